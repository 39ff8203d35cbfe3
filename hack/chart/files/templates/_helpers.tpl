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

{{- /* The objects of a file, with labels more and the namespace of the operator. The file is not a template: alerts have braces of their own. */ -}}
{{- define "toban.labelled" -}}
{{- range splitList "\n---\n" (.text | replace "toban-system" .namespace) }}
{{- $object := fromYaml . }}
{{- $labels := merge (dict) $.labels ($object.metadata.labels | default dict) }}
{{- if $labels }}{{ $_ := set $object.metadata "labels" $labels }}{{ end }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}
