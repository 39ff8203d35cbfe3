{{- define "toban.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ required "give image.digest or image.tag" .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "toban.clusterRoles" -}}
{{- if kindIs "bool" .Values.clusterRoles -}}
{{- if .Values.clusterRoles }}yes{{ end -}}
{{- else if not .Values.watchNamespaces -}}
yes
{{- end -}}
{{- end -}}

{{- /* The objects of a file of monitoring, with the labels of the values and the namespace of the operator. The file
is not a template: alerts have braces of their own. */ -}}
{{- define "toban.labelled" -}}
{{- $labels := .top.Values.monitoring.labels }}
{{- range splitList "\n---\n" (.top.Files.Get .file | replace "toban-system" .top.Release.Namespace) }}
{{- $object := fromYaml . }}
{{- $all := merge (dict) $labels ($object.metadata.labels | default dict) }}
{{- if $all }}{{ $_ := set $object.metadata "labels" $all }}{{ end }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}
