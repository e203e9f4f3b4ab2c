{{/* An endpoint of a ServiceMonitor or PodMonitor: the port by name, and what the values say. */}}
{{- define "partition-autoscaler.endpoint" -}}
- port: {{ .port }}
  path: /metrics
  {{- with .monitor.interval }}
  interval: {{ . }}
  {{- end }}
  {{- with .monitor.scrapeTimeout }}
  scrapeTimeout: {{ . }}
  {{- end }}
  {{- with .monitor.relabelings }}
  relabelings:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .monitor.metricRelabelings }}
  metricRelabelings:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
