{{/* The node that a pod's token is bound to; "" where it is not. */}}
{{- define "nfd.claim" -}}
- name: claim
  expression: >-
    request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')
{{- end }}

{{- define "nfd.claimPresent" -}}
- expression: variables.claim != ''
  message: this worker token is not bound to a pod on a node
  reason: Forbidden
{{- end }}

{{/* The binding that makes a policy count: dict root, suffix. */}}
{{- define "nfd.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "nfd.clusterMetadata" . | nindent 2 }}
spec:
  policyName: {{ include "nfd.fullname" .root }}{{ .suffix }}
  validationActions: [Deny]
{{- end }}

{{/* A raw CEL string with the regular expression of a list of shell patterns. */}}
{{- define "nfd.celPattern" -}}
{{- $patterns := list }}
{{- range . }}
{{- $patterns = append $patterns (regexQuoteMeta . | replace "\\*" ".*" | replace "\\?" ".") }}
{{- end -}}
r'^({{ join "|" $patterns }})$'
{{- end }}
