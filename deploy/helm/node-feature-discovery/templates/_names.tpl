{{/* Names and labels; they equal upstream's, so that an upgrade finds its objects. */}}

{{- define "nfd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nfd.fullname" -}}
{{- $name := include "nfd.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "nfd.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "nfd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nfd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nfd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "nfd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Metadata of a namespaced object: dict root, suffix of the name. */}}
{{- define "nfd.metadata" -}}
name: {{ include "nfd.fullname" .root }}{{ .suffix }}
namespace: {{ include "nfd.namespace" .root }}
labels:
  {{- include "nfd.labels" .root | nindent 2 }}
{{- end }}

{{/* Metadata of a cluster-wide object: dict root, suffix of the name. */}}
{{- define "nfd.clusterMetadata" -}}
name: {{ include "nfd.fullname" .root }}{{ .suffix }}
labels:
  {{- include "nfd.labels" .root | nindent 2 }}
{{- end }}

{{/* Service account of a component: dict root, component (values), suffix. */}}
{{- define "nfd.serviceAccount" -}}
{{- if .component.serviceAccount.create -}}
{{ default (printf "%s%s" (include "nfd.fullname" .root) .suffix) .component.serviceAccount.name }}
{{- else -}}
{{ default "default" .component.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "nfd.masterServiceAccount" -}}
{{ include "nfd.serviceAccount" (dict "root" . "component" .Values.master "suffix" "") }}
{{- end }}
{{- define "nfd.workerServiceAccount" -}}
{{ include "nfd.serviceAccount" (dict "root" . "component" .Values.worker "suffix" "-worker") }}
{{- end }}
{{- define "nfd.gcServiceAccount" -}}
{{ include "nfd.serviceAccount" (dict "root" . "component" .Values.gc "suffix" "-gc") }}
{{- end }}
