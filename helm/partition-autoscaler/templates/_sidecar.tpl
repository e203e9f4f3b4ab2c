{{/*
For the chart of a Kafka Streams application that has this chart as a dependency with `mode: sidecar`. The argument of all of them
is the context of the dependency: (index .Subcharts "partition-autoscaler").
*/}}

{{/* Whether the sidecar is an init container that keeps running; empty = no. */}}
{{- define "partition-autoscaler.sidecar.native" -}}
{{- $native := .Values.nativeSidecar | toString -}}
{{- if or (eq $native "true") (and (eq $native "auto") (semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version)) -}}
true
{{- end }}
{{- end }}

{{/* The container. No readiness or startup probe: the application goes on whatever becomes of its sidecar. */}}
{{- define "partition-autoscaler.sidecar" -}}
{{ include "partition-autoscaler.container" . }}
{{- if include "partition-autoscaler.sidecar.native" . }}
restartPolicy: Always
{{- end }}
{{- end }}

{{/* An entry of `initContainers`, or nothing. */}}
{{- define "partition-autoscaler.sidecar.initContainers" -}}
{{- if include "partition-autoscaler.sidecar.native" . -}}
- {{ include "partition-autoscaler.sidecar" . | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* An entry of `containers`, or nothing. */}}
{{- define "partition-autoscaler.sidecar.containers" -}}
{{- if not (include "partition-autoscaler.sidecar.native" .) -}}
- {{ include "partition-autoscaler.sidecar" . | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* Entries of `volumes`. */}}
{{- define "partition-autoscaler.sidecar.volumes" -}}
{{ include "partition-autoscaler.volumes" . }}
{{- end }}

{{/* A label of the pod, by which the PodMonitor finds it. */}}
{{- define "partition-autoscaler.sidecar.podLabels" -}}
partition-autoscaler/sidecar: {{ include "partition-autoscaler.fullname" . }}
{{- end }}
