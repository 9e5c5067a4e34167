// Package storydoc makes documents and requests from the short options of transcripts, such as
// gpus=4 group=train/2, and words the leader's answers for transcripts. The package decides no
// default of the API, and judges no document: the product refuses those with faults.
package storydoc

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// Document is the JSON of an allocation or a job, by its kind; options are those of a line
// of a transcript. It panics where the options make no JSON.
func Document(kind, name string, options map[string]string) string {
	requests := map[string]string{"cpu": options["gpus"], "memory": cmp.Or(options["memory"], options["gpus"]+"Gi"), string(resource.GPU): options["gpus"]}
	if name, amount, given := strings.Cut(options["wants"], ":"); given {
		requests[name] = amount
	}
	spec := map[string]any{"resources": map[string]any{"requests": requests}}
	if options["policy"] != "" {
		spec["preemptionPolicy"] = options["policy"]
	}
	if more := options["else"]; more != "" { // GPUS/KEY:VALUE+GPUS/KEY:VALUE
		spec["alternatives"] = alternatives(more)
	}
	top := spec
	if kind == "Job" {
		members, _ := strconv.Atoi(options["members"])
		top = map[string]any{"parallelism": members, "template": map[string]any{"spec": spec}}
		if sets := options["sets"]; sets != "" {
			top["members"] = memberSets(sets)
			delete(top, "parallelism")
			delete(spec, "resources")
		}
		if ttl := options["ttl"]; ttl != "" {
			spec["ttl"] = ttl
		}
		if lost := options["lost"]; lost != "" {
			top["onMemberLost"] = lost
		}
		if text := options["dependency"]; text != "" { // TYPE:JOB+TYPE:JOB
			top["dependencies"] = dependencies(text)
		}
	}
	if scheduling := scheduling(kind, options); len(scheduling) > 0 {
		spec["scheduling"] = scheduling
	}
	if options["suspend"] != "" {
		top["suspend"] = true
	}
	if priority, err := strconv.Atoi(options["priority"]); err == nil {
		top["priority"] = priority
	}
	for field, value := range map[string]string{"queue": options["queue"], "priorityClass": options["class"]} {
		if value != "" {
			top[field] = value
		}
	}
	metadata := map[string]any{"name": name}
	if key, value, given := strings.Cut(options["labels"], ":"); given {
		metadata["labels"] = map[string]string{key: value}
	}
	text, err := json.Marshal(map[string]any{"kind": kind, "metadata": metadata, "spec": top})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// dependencies are those of a document: TYPE:JOB, several with a plus between.
func dependencies(text string) (list []any) {
	for _, one := range strings.Split(text, "+") {
		kind, job, _ := strings.Cut(one, ":")
		list = append(list, map[string]any{"type": kind, "job": job})
	}
	return list
}

// memberSets are those of a document: NAME:MEMBERS:GPUS/KEY:VALUE, several with a plus
// between. A member without GPUs wants two CPUs.
func memberSets(text string) (list []any) {
	for _, one := range strings.Split(text, "+") {
		one, label, selects := strings.Cut(one, "/")
		fields := strings.Split(one, ":")
		count, _ := strconv.Atoi(fields[1])
		requests := map[string]string{"cpu": "2", "memory": "2Gi"}
		if gpus := fields[2]; gpus != "0" {
			requests = map[string]string{"cpu": gpus, "memory": gpus + "Gi", string(resource.GPU): gpus}
		}
		set := map[string]any{"name": fields[0], "count": count, "resources": map[string]any{"requests": requests}}
		if key, value, _ := strings.Cut(label, ":"); selects {
			set["nodeSelector"] = map[string]string{key: value}
		}
		list = append(list, set)
	}
	return list
}

// alternatives are those of a document: GPUS/KEY:VALUE, several with a plus between.
func alternatives(text string) (list []any) {
	for _, one := range strings.Split(text, "+") {
		gpus, label, _ := strings.Cut(one, "/")
		key, value, _ := strings.Cut(label, ":")
		list = append(list, map[string]any{
			"resources": map[string]any{"requests": map[string]string{"cpu": gpus, "memory": gpus + "Gi", string(resource.GPU): gpus}}, "nodeSelector": map[string]string{key: value},
		})
	}
	return list
}

// scheduling is that section of a document.
func scheduling(kind string, options map[string]string) map[string]any {
	made, affinity, gang := map[string]any{}, map[string]any{}, map[string]any{}
	if members, err := strconv.Atoi(options["gang"]); err == nil && kind == "Job" {
		gang["minMembers"] = members
	}
	if id, members, given := strings.Cut(options["group"], "/"); given {
		gang["groupId"] = id
		gang["minMembers"], _ = strconv.Atoi(members)
	}
	if timeout := options["timeout"]; timeout != "" {
		gang["timeout"] = timeout
	}
	if key, value, given := strings.Cut(options["on"], ":"); given {
		made["nodeSelector"] = map[string]string{key: value}
	}
	if rule := options["tolerate"]; rule != "" {
		key, seconds, timed := strings.Cut(rule, "/")
		o := map[string]any{"key": key, "operator": "Exists", "effect": "NoExecute"}
		if timed {
			o["tolerationSeconds"], _ = strconv.Atoi(seconds)
		}
		made["tolerations"] = []any{o}
	}
	if levels := options["levels"]; levels != "" {
		var list []any
		for _, key := range strings.Split(levels, "+") {
			level := map[string]any{"topologyKey": key}
			if key, preferred := strings.CutSuffix(key, "?"); preferred {
				level = map[string]any{"topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
			}
			list = append(list, level)
		}
		gang["topology"] = list
	}
	if members, key, given := strings.Cut(options["subgroup"], "/"); given {
		if n, err := strconv.Atoi(members); err == nil {
			gang["subgroup"] = map[string]any{"members": n, "topologyKey": key}
		} else {
			gang["subgroup"] = map[string]any{"name": members, "topologyKey": key}
		}
	}
	if len(gang) > 0 {
		made["gangScheduling"] = gang
	}
	for option, field := range map[string]string{"near": "podAffinity", "apart": "podAntiAffinity"} {
		rule := options[option]
		if rule == "" {
			continue
		}
		topology, selector, _ := strings.Cut(rule, "/")
		term := map[string]any{"topologyKey": topology}
		if key, value, given := strings.Cut(selector, ":"); given {
			term["labelSelector"] = map[string]any{"matchLabels": map[string]string{key: value}}
		}
		affinity[field] = map[string]any{"requiredDuringScheduling": []any{term}}
	}
	if len(affinity) > 0 {
		made["affinity"] = affinity
	}
	if topology, skew, given := strings.Cut(options["spread"], "/"); given {
		most, _ := strconv.Atoi(skew)
		made["topologySpreadConstraints"] = []any{map[string]any{"topologyKey": topology, "maxSkew": most}}
	}
	return made
}
