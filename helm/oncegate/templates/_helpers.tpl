{{- define "oncegate.name" -}}
{{- $name := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) -}}
{{- /* Short enough for -migrate and for the suffixes of pods. */ -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "oncegate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "oncegate.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "oncegate.image" -}}
{{- $repository := required "image.repository is missing: name the image that you pushed, as in registry.example/oncegate" .Values.image.repository -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* What gateway and migrate Job have in common. No user id: the image has one, and some clusters give their own. */ -}}
{{- define "oncegate.pod" -}}
automountServiceAccountToken: false
# Kubernetes' own variables for services would look like settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "oncegate.container" -}}
image: {{ include "oncegate.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
env:
  - name: DATABASE_URL
    valueFrom:
      secretKeyRef:
        name: {{ required "store.existingSecret.name is missing: name the Secret that holds the URL of your PostgreSQL" .Values.store.existingSecret.name }}
        key: {{ .Values.store.existingSecret.key }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
