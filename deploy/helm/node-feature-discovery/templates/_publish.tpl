{{/* Publish mode of the workers, and the fence that it depends on. */}}

{{/* "true" where the API server serves ValidatingAdmissionPolicy v1 and puts the
     node into a pod's token. */}}
{{- define "nfd.policiesServed" -}}
{{- semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}
{{- end }}

{{/* "true" where each worker's token is fenced to its own node. */}}
{{- define "nfd.fenced" -}}
{{- and .Values.admissionPolicy.enable .Values.worker.enable (eq (include "nfd.policiesServed" .) "true") }}
{{- end }}

{{- define "nfd.publish" -}}
{{- $fenced := eq (include "nfd.fenced" .) "true" }}
{{- if eq .Values.publish "auto" }}
{{- ternary "nodefeature,node" "nodefeature" $fenced }}
{{- else }}
{{- if and (has "node" (splitList "," .Values.publish)) .Values.worker.enable (not $fenced) }}
{{- fail (printf "publish=%s lets workers write nodes, which needs the admission policies: set admissionPolicy.enable=true on Kubernetes 1.30 or newer (this is %s), or publish=nodefeature" .Values.publish .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- .Values.publish }}
{{- end }}
{{- end }}

{{/* "true" where workers write their own nodes. */}}
{{- define "nfd.publishesNode" -}}
{{- has "node" (splitList "," (include "nfd.publish" .)) }}
{{- end }}

{{/* "true" where workers write NodeFeatures. */}}
{{- define "nfd.publishesNodeFeature" -}}
{{- has "nodefeature" (splitList "," (include "nfd.publish" .)) }}
{{- end }}

{{/* Configuration of the worker: the user's, the namespaces that the policy lets it
     write, and profiles. */}}
{{- define "nfd.workerConfig" -}}
{{- $config := deepCopy (default dict .Values.worker.config) }}
{{- $core := default dict $config.core }}
{{- if hasKey $core "labelNamespaces" }}
{{- fail "worker.config.core.labelNamespaces: set the value labelNamespaces, which the admission policy uses too" }}
{{- end }}
{{- if hasKey $core "profiles" }}
{{- fail "worker.config.core.profiles: set the value profiles" }}
{{- end }}
{{- $ours := dict "labelNamespaces" .Values.labelNamespaces }}
{{- with .Values.profiles }}
{{- $_ := set $ours "profiles" . }}
{{- end }}
{{- $_ := set $config "core" (merge $ours $core) }}
{{- toYaml $config }}
{{- end }}

{{- define "nfd.masterConfig" -}}
{{- $config := deepCopy (default dict .Values.master.config) }}
{{- if hasKey $config "startupTaints" }}
{{- fail "master.config.startupTaints: set the value startupTaints, which the DaemonSets tolerate too" }}
{{- end }}
{{- if hasKey $config "trust" }}
{{- fail "master.config.trust: set the value trust, which the admission policy uses too" }}
{{- end }}
{{- $_ := set $config "startupTaints" .Values.startupTaints }}
{{- if .Values.trust.enforce }}
{{- $_ := set $config "trust" (pick .Values.trust "enforce" "allow") }}
{{- end }}
{{- toYaml $config }}
{{- end }}
