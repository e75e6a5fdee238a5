{{/* What the pods of all components share. */}}

{{- define "nfd.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* Pod metadata: dict root, component (values), role, checksum (text or empty). */}}
{{- define "nfd.podMetadata" -}}
labels:
  {{- include "nfd.selectorLabels" .root | nindent 2 }}
  role: {{ .role }}
  {{- with .component.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or .checksum .component.annotations }}
annotations:
  {{- with .checksum }}
  checksum/config: {{ . }}
  {{- end }}
  {{- with .component.annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Checksum that restarts pods: dict root, config (rendered text). */}}
{{- define "nfd.checksum" -}}
{{- $chart := ternary "" .root.Chart.Version .root.Values.checksumValuesOnly }}
{{- printf "%s%s" $chart .config | sha256sum }}
{{- end }}

{{/* Where and how a pod runs: dict root, component (values), priorityClassName,
     tolerateStartup (boolean). */}}
{{- define "nfd.podSpec" -}}
enableServiceLinks: false
{{- with default .root.Values.global.imagePullSecrets .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {{ if kindIs "string" . }}name: {{ . }}{{ else }}{{ toYaml . | nindent 4 | trim }}{{ end }}
  {{- end }}
{{- end }}
hostNetwork: {{ default false .component.hostNetwork }}
{{- if not (kindIs "invalid" .component.hostUsers) }}
hostUsers: {{ .component.hostUsers }}
{{- end }}
dnsPolicy: {{ default "ClusterFirstWithHostNet" .component.dnsPolicy }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .component.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .component.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .component.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .component.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .component.tolerations }}
{{- if .tolerateStartup }}
{{- range .root.Values.startupTaints }}
{{- $tolerations = append $tolerations (dict "key" . "operator" "Exists") }}
{{- end }}
{{- end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A probe: dict path, probe (values). */}}
{{- define "nfd.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
{{- range $key, $value := .probe }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }}: {{ int $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* The node's name, as every component wants it. */}}
{{- define "nfd.nodeName" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}

{{- define "nfd.featureGates" -}}
{{- range $gate, $on := .Values.featureGates -}}
- "-feature-gates={{ $gate }}={{ $on }}"
{{ end -}}
{{- end }}

{{/* Security context of containers that nobody may loosen. */}}
{{- define "nfd.lockedSecurityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}
