{{/* The configuration file: the values' `config`, as a text or as YAML. */}}
{{- define "punctual.config" -}}
{{- $config := .Values.config -}}
{{- if kindIs "string" $config -}}
{{- $config -}}
{{- else -}}
{{- range $key := list "instance" "state_dir" -}}
{{- if hasKey $config $key -}}
{{- fail (printf "config.%s is set by the chart: each pod has its own; remove it" $key) -}}
{{- end -}}
{{- end -}}
{{- if hasKey (default dict $config.admin) "listen" -}}
{{- fail "config.admin.listen is set by the chart; use adminPort" -}}
{{- end -}}
{{- include "punctual.refuseInexact" (dict "path" "config" "value" $config) -}}
{{- toYaml $config -}}
{{- end -}}
{{- end }}

{{/* Fails on a number that Helm has rounded: values are floating point numbers from 2^53 on. */}}
{{- define "punctual.refuseInexact" -}}
{{- $path := .path -}}
{{- if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- include "punctual.refuseInexact" (dict "path" (printf "%s.%s" $path $key) "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "punctual.refuseInexact" (dict "path" (printf "%s[%d]" $path $index) "value" $value) -}}
{{- end -}}
{{- else if kindIs "float64" .value -}}
{{- if or (ge .value 9007199254740992.0) (le .value -9007199254740992.0) -}}
{{- fail (printf "%s is a number that Helm cannot carry exactly; write it in quotes" $path) -}}
{{- end -}}
{{- end -}}
{{- end }}
