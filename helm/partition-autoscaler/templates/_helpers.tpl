{{- define "partition-autoscaler.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "partition-autoscaler.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "partition-autoscaler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "partition-autoscaler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of the pod of `helm test`, which is none of the Service. */}}
{{- define "partition-autoscaler.testLabels" -}}
app.kubernetes.io/name: {{ include "partition-autoscaler.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "partition-autoscaler.labels" -}}
{{ include "partition-autoscaler.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "partition-autoscaler.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (ternary (include "partition-autoscaler.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "partition-autoscaler.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* The port of http.listen. */}}
{{- define "partition-autoscaler.port" -}}
{{ regexFind "[0-9]+$" .Values.config.http.listen }}
{{- end }}

{{/* The container, without what differs between the modes. */}}
{{- define "partition-autoscaler.container" -}}
name: partition-autoscaler
image: {{ include "partition-autoscaler.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [run, --config, /etc/partition-autoscaler/config.toml]
workingDir: /etc/partition-autoscaler
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: autoscaler
    containerPort: {{ include "partition-autoscaler.port" . }}
    protocol: TCP
livenessProbe:
  httpGet:
    path: /livez
    port: {{ include "partition-autoscaler.port" . }}
  {{- toYaml .Values.livenessProbe | nindent 2 }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - name: partition-autoscaler
    mountPath: /etc/partition-autoscaler
    readOnly: true
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* One volume with everything the program reads; mounted whole, so that Kubernetes keeps it up to date. */}}
{{- define "partition-autoscaler.volumes" -}}
- name: partition-autoscaler
  projected:
    sources:
      - configMap:
          name: {{ include "partition-autoscaler.fullname" . }}
      {{- with .Values.topology.existingConfigMap }}
      - configMap:
          name: {{ . }}
      {{- end }}
      {{- range $file, $source := .Values.secretFiles }}
      - secret:
          name: {{ $source.secret }}
          items:
            - key: {{ $source.key }}
              path: secrets/{{ $file }}
      {{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
