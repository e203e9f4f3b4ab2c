{{/* What the schema cannot say. Each message names the value, what was expected, and what to do. */}}
{{- define "partition-autoscaler.validate" -}}
{{- $config := .Values.config -}}
{{- $applications := kindIs "slice" $config.application | ternary $config.application (list $config) -}}

{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])|:0$" $config.http.listen -}}
{{- fail (printf "config.http.listen is %s, but probes and scrapes come from outside the pod and need a fixed port; use 0.0.0.0:9878" $config.http.listen) -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "HTTP_LISTEN" -}}
{{- fail "extraEnv holds HTTP_LISTEN, which would win over the port that probes and scrapes use; use config.http.listen" -}}
{{- end -}}
{{- end -}}

{{- if and (eq .Values.mode "deployment") (gt (int .Values.replicaCount) 1) -}}
{{- range $applications -}}
{{- if eq "none" (dig "leader" "election" (dig "leader" "election" "kafka" $config) .) -}}
{{- fail (printf "replicaCount is %d with config.leader.election=none: every pod would act; use leader.election=kafka, or replicaCount 1" (int $.Values.replicaCount)) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "LEADER_ELECTION" -}}
{{- fail "extraEnv holds LEADER_ELECTION, which would win over what is checked here; use config.leader.election" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if and .Values.networkPolicy.enabled (eq .Values.mode "sidecar") -}}
{{- fail "networkPolicy.enabled needs mode deployment, because a sidecar shares the network of the application; use the NetworkPolicy of its pod" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (eq .Values.mode "sidecar") -}}
{{- fail "serviceMonitor.enabled needs mode deployment, because a sidecar has no Service; use podMonitor" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- fail "serviceMonitor.enabled and podMonitor.enabled would scrape everything twice; use one of them" -}}
{{- end -}}

{{- range prepend $applications $config -}}
{{- include "partition-autoscaler.validate.kafka" (dict "values" $.Values "prefix" "kafka" "table" (.kafka | default dict)) -}}
{{- with dig "topology" "url" "" . -}}
{{- if regexMatch "^https?://[^/]*@" . -}}
{{- fail "config.topology.url holds a user or password, which values must not; set the variable TOPOLOGY_URL from a Secret with extraEnv" -}}
{{- end -}}
{{- end -}}
{{- with dig "topology" "file" "" . -}}
{{- if not (or (isAbs .) $.Values.topology.existingConfigMap (hasKey $.Values.topology.files .)) -}}
{{- fail (printf "config.topology.file is %s, which is not a key of topology.files; add the text there, or name a ConfigMap in topology.existingConfigMap" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "partition-autoscaler.validate.required" . -}}
{{- end }}

{{/* What the program does not start without. It may come by a variable, and a file may be mounted in place of the one made here. */}}
{{- define "partition-autoscaler.validate.required" -}}
{{- $config := .Values.config -}}
{{- $several := kindIs "slice" $config.application -}}
{{- $variables := list -}}
{{- range .Values.extraEnv -}}
{{- if or .value .valueFrom }}{{ $variables = append $variables .name }}{{ end -}}
{{- end -}}
{{- $mounted := false -}}
{{- range .Values.extraVolumeMounts -}}
{{- if eq .mountPath "/etc/partition-autoscaler/config.toml" }}{{ $mounted = true }}{{ end -}}
{{- end -}}
{{- range $index, $application := $mounted | ternary list ($several | ternary $config.application (list $config)) -}}
{{- $place := $several | ternary (printf "config.application[%d]" $index) "config" -}}
{{- $all := mergeOverwrite (omit (deepCopy $config) "application") (deepCopy $application) -}}
{{- $found := list -}}
{{- range list "application.id" "bootstrap.servers" "topology.file" "topology.url" "topology.subtopologies" -}}
{{- $keys := splitList "." . -}}
{{- if or (dig (first $keys) (last $keys) "" $all) (has (replace "." "_" . | upper) $variables) }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- range list "application.id" "bootstrap.servers" -}}
{{- if not (has . $found) -}}
{{- fail (printf "%s.%s is not set, so the program would end with exit code 2; set it, or the variable %s in extraEnv" $place . (replace "." "_" . | upper)) -}}
{{- end -}}
{{- end -}}
{{- if eq (len $found) 2 -}}
{{- fail (printf "%s has no topology, so the program would end with exit code 2; set topology.file, topology.url or topology.subtopologies" $place) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "partition-autoscaler.validate.kafka" -}}
{{- $values := .values -}}
{{- $prefix := .prefix -}}
{{- range $key, $value := .table -}}
{{- $name := printf "%s.%s" $prefix $key | lower -}}
{{- if kindIs "map" $value -}}
{{- include "partition-autoscaler.validate.kafka" (dict "values" $values "prefix" $name "table" $value) -}}
{{- else if hasSuffix ".file" $name -}}
{{- $file := $value | toString -}}
{{- if and (hasPrefix "secrets/" $file) (not (hasKey $values.secretFiles (trimPrefix "secrets/" $file))) -}}
{{- fail (printf "config.%s is %s, but secretFiles has no %s; name the Secret and its key there" $name $file (trimPrefix "secrets/" $file)) -}}
{{- end -}}
{{- else if regexMatch "password|passphrase|secret|key\\.pem|jaas\\.config|oauthbearer\\.config|keystore\\.key" $name -}}
{{- fail (printf "config.%s is a secret, which values must not hold; name an existing Secret in secretFiles and set config.%s.file" $name $name) -}}
{{- end -}}
{{- end -}}
{{- end }}
