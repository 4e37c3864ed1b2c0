{{- define "assay.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "assay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "assay.labels" -}}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Refuses values that cannot work. */}}
{{- define "assay.check" -}}
{{- if not .Values.secret -}}
{{- fail "secret is empty: set it to the name of a Secret, see values.yaml" -}}
{{- end -}}
{{- if and (not .Values.postgresql) (or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled) -}}
{{- fail "several instances need PostgreSQL: set postgresql to true, and DATABASE_URL in the Secret" -}}
{{- end -}}
{{- end }}
