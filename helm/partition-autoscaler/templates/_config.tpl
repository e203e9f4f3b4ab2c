{{/* config.toml. JSON texts, numbers, truth values and lists of them are TOML as they are. */}}
{{- define "partition-autoscaler.config" -}}
{{- $config := .Values.config -}}
{{- include "partition-autoscaler.toml.table" (dict "prefix" "" "table" (kindIs "slice" $config.application | ternary (omit $config "application") $config)) }}
{{- if kindIs "slice" $config.application }}
{{- range $config.application }}

[[application]]
{{- include "partition-autoscaler.toml.table" (dict "prefix" "" "table" .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The lines of a table, all its levels in dotted keys. */}}
{{- define "partition-autoscaler.toml.table" -}}
{{- $prefix := .prefix -}}
{{- range $key, $value := .table }}
{{- $name := printf "%s%s" $prefix (include "partition-autoscaler.toml.key" $key) }}
{{- if and (kindIs "map" $value) $value }}
{{- include "partition-autoscaler.toml.table" (dict "prefix" (printf "%s." $name) "table" $value) }}
{{- else if not (kindIs "invalid" $value) }}
{{ $name }} = {{ include "partition-autoscaler.toml.value" $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "partition-autoscaler.toml.key" -}}
{{ regexMatch "^[A-Za-z0-9_-]+$" . | ternary . (toJson .) }}
{{- end }}

{{- define "partition-autoscaler.toml.value" -}}
{{- if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . }}{{ $items = append $items (include "partition-autoscaler.toml.value" .) }}{{ end -}}
[{{ join ", " $items }}]
{{- else if kindIs "map" . -}}
{{- $fields := list -}}
{{- range $key, $value := . }}
{{- $fields = append $fields (printf "%s = %s" (include "partition-autoscaler.toml.key" $key) (include "partition-autoscaler.toml.value" $value)) }}
{{- end -}}
{ {{- join ", " $fields -}} }
{{- else -}}
{{ toJson . }}
{{- end }}
{{- end }}

{{/* The keys that docs/configuration.md says count at once, as a pattern of their lines; helm/test compares the two. */}}
{{- define "partition-autoscaler.config.running" -}}
(^|\n)(partition\.autoscaling\.(enabled|timeout\.ms|poll\.interval\.ms|on\.error)|max\.new\.partitions|log\.level|baseline(\..+)?) = .*
{{- end }}

{{/* Changes exactly when a setting changes that counts at the next start only. */}}
{{- define "partition-autoscaler.config.checksum" -}}
{{ regexReplaceAll (include "partition-autoscaler.config.running" .) (include "partition-autoscaler.config" .) "" | sha256sum }}
{{- end }}
