{{- /* Oncegate's configuration as YAML. Refused is only what could not work in this chart; the rest is its own to judge. */ -}}
{{- define "oncegate.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := required "config.upstream.url is missing: the service to stand in front of, as in http://orders:3000" (dig "upstream" "url" "" $config) -}}
{{- if hasKey (dig "store" dict $config) "url" -}}
{{- fail "config.store.url: a ConfigMap is no place for a password; put the URL into a Secret and name that in store.existingSecret" -}}
{{- end -}}
{{- if dig "store" "embedded" false $config -}}
{{- fail "config.store.embedded: each pod would have an empty store of its own; use store.existingSecret" -}}
{{- end -}}
{{- /* Helm reads a bare off as false, which a mode cannot be. */ -}}
{{- range $policy := prepend (dig "routes" list $config) (dig "defaults" dict $config) -}}
{{- if eq (toString (dig "mode" "" $policy)) "false" -}}
{{- $_ := set $policy "mode" "off" -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* The port of config.listen; needs "config", "name", "default". */ -}}
{{- define "oncegate.port" -}}
{{- $address := dig "listen" .name (printf "0.0.0.0:%d" .default) .config -}}
{{- if not (regexMatch `^(0\.0\.0\.0|\[::\]):[1-9][0-9]{0,4}$` $address) -}}
{{- fail (printf "config.listen.%s is %s: Service and probes come from outside of the pod; write 0.0.0.0:%d or [::]:%d, with a port of your choice" .name $address .default .default) -}}
{{- end -}}
{{- regexFind "[0-9]+$" $address -}}
{{- end -}}

{{- define "oncegate.dataPort" -}}
{{- include "oncegate.port" (dict "config" .Values.config "name" "data" "default" 8080) -}}
{{- end -}}

{{- define "oncegate.opsPort" -}}
{{- include "oncegate.port" (dict "config" .Values.config "name" "ops" "default" 9090) -}}
{{- end -}}

{{- /* Whole seconds of config.drain's times; needs "config", "name", "default". */ -}}
{{- define "oncegate.drainSeconds" -}}
{{- $text := dig "drain" .name .default .config -}}
{{- if not (regexMatch "^[0-9]{1,9}(ms|s|m|h|d)$" $text) -}}
{{- fail (printf "config.drain.%s is %s: terminationGracePeriodSeconds is made of it; write it out, as %s" .name $text .default) -}}
{{- end -}}
{{- $ms := get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000) (regexFind "[a-z]+$" $text) -}}
{{- div (add 999 (mul (regexFind "^[0-9]+" $text | int64) $ms)) 1000 -}}
{{- end -}}

{{- /* Longer than a whole drain: after drain.max the store gets up to 10 s for what is still to be settled. */ -}}
{{- define "oncegate.graceSeconds" -}}
{{- $delay := include "oncegate.drainSeconds" (dict "config" .Values.config "name" "delay" "default" "5s") -}}
{{- $max := include "oncegate.drainSeconds" (dict "config" .Values.config "name" "max" "default" "40s") -}}
{{- add (int64 $delay) (int64 $max) 15 -}}
{{- end -}}
