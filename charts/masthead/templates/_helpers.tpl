{{- /* The image, by its digest if there is one. */ -}}
{{- define "masthead.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* The name of the Secret with the certificate of the metrics; empty if the manager makes its own. */ -}}
{{- define "masthead.certificate" -}}
{{- if .Values.metrics.certificate.secretName -}}
{{ .Values.metrics.certificate.secretName }}
{{- else if .Values.metrics.certificate.certManager.enabled -}}
masthead-metrics-certificate
{{- end -}}
{{- end }}
