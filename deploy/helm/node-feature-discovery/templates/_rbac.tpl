{{/* A binding: dict root, suffix, kind (Role or ClusterRole), account. */}}
{{- define "nfd.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- $metadata := ternary "nfd.clusterMetadata" "nfd.metadata" (eq .kind "ClusterRole") }}
  {{- include $metadata . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ include "nfd.fullname" .root }}{{ .suffix }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ include "nfd.namespace" .root }}
{{- end }}
