{{- define "factbook.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "factbook.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "factbook.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "factbook.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "factbook.selector" -}}
app.kubernetes.io/name: {{ include "factbook.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "factbook.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "factbook.selector" . }}
{{- end -}}

{{- define "factbook.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "factbook.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "factbook.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "factbook.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "factbook.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Variables of every process; the server is told whether workers collect. */}}
{{- define "factbook.env" -}}
{{- if eq .Values.database.kind "sqlite" }}
- name: FACTBOOK_DATABASE_URL
  value: sqlite:////data/factbook.db
{{- else }}
- name: FACTBOOK_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.urlKey }}
{{- with .Values.database.replicaUrlKey }}
- name: FACTBOOK_REPLICA_URL
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.database.existingSecret }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.tokenKey.existingSecret }}
- name: FACTBOOK_TOKEN_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.tokenKey.key }}
{{- end }}
{{- with .Values.publicUrl }}
- name: FACTBOOK_PUBLIC_URL
  value: {{ . | quote }}
{{- end }}
- name: FACTBOOK_COLLECT
  value: {{ eq (int .Values.worker.replicas) 0 | quote }}
{{- range $name, $value := .Values.settings }}
- name: FACTBOOK_{{ upper $name }}
  value: {{ $value | quote }}
{{- end }}
{{- if .Values.configFile.existingSecret }}
- name: FACTBOOK_CONFIG
  value: /etc/factbook/factbook.toml
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "factbook.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if eq .Values.database.kind "sqlite" }}
- name: data
  mountPath: /data
{{- end }}
{{- if .Values.configFile.existingSecret }}
- name: config
  mountPath: /etc/factbook
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "factbook.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
{{- if eq .Values.database.kind "sqlite" }}
- name: data
  persistentVolumeClaim:
    claimName: {{ default (include "factbook.fullname" .) .Values.database.persistence.existingClaim }}
{{- end }}
{{- with .Values.configFile.existingSecret }}
- name: config
  secret:
    secretName: {{ . }}
    items:
      - key: {{ $.Values.configFile.key }}
        path: factbook.toml
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A container that runs `factbook`: (dict "root" $ "name" … "args" … "resources" …). */}}
{{- define "factbook.container" -}}
name: {{ .name }}
image: {{ include "factbook.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: {{ toJson .args }}
env:
{{- include "factbook.env" .root | nindent 2 }}
{{- with .root.Values.extraEnvFrom }}
envFrom:
{{- toYaml . | nindent 2 }}
{{- end }}
resources:
{{- toYaml .resources | nindent 2 }}
securityContext:
{{- include "factbook.containerSecurity" .root | nindent 2 }}
volumeMounts:
{{- include "factbook.volumeMounts" .root | nindent 2 }}
{{- end -}}

{{/* Places where a pod may run: the values of `server` or `worker`. */}}
{{- define "factbook.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* A deployment: (dict "root" $ "component" … "values" … "replicas" … "container" …). */}}
{{- define "factbook.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "factbook.fullname" .root }}-{{ .component }}
  labels:
    {{- include "factbook.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if ne .replicas nil }}
  replicas: {{ .replicas }}
  {{- end }}
  {{- if eq .root.Values.database.kind "sqlite" }}
  # The file belongs to one pod at a time.
  strategy:
    type: Recreate
  {{- end }}
  selector:
    matchLabels:
      {{- include "factbook.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- with .values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "factbook.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
      {{- with .values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "factbook.serviceAccount" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
      securityContext:
        {{- include "factbook.podSecurity" .root | nindent 8 }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.extraInitContainers }}
      initContainers:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - {{- .container | nindent 10 }}
        {{- with .root.Values.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        {{- include "factbook.volumes" .root | nindent 8 }}
      {{- include "factbook.placement" .values | nindent 6 }}
{{- end -}}
