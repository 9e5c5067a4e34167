package api

import (
	"encoding/json"
	"fmt"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// ResourceNames judges the names of resources in documents of quota.
type ResourceNames struct {
	Known *registry.Registry
	// Keeps reports whether a name is kept though it is misspelt: the object has it
	// already, or the client asked for it. nil keeps none.
	Keeps func(resource.Name) bool
}

// JudgeQuota refuses a resource quota that names a misspelt resource, with 422 and
// the name that is meant, and warns of limits that have no effect now.
func (n ResourceNames) JudgeQuota(q *ResourceQuota) (warnings []string, status *Status) {
	for _, at := range q.Spec.names() {
		if warnings, status = n.judge(warnings, at); status != nil {
			return nil, status
		}
	}
	return warnings, nil
}

// JudgeTree is JudgeQuota of the resources that a tree counts or limits. The tree's
// spec was decoded before.
func (n ResourceNames) JudgeTree(t *QuotaTree) (warnings []string, status *Status) {
	for _, at := range t.names() {
		if warnings, status = n.judge(warnings, at); status != nil {
			return nil, status
		}
	}
	return warnings, nil
}

// namedAt is a resource's name and the field that has the name.
type namedAt struct {
	path string
	name resource.Name
}

func (n ResourceNames) judge(warnings []string, at namedAt) ([]string, *Status) {
	verdict := n.Known.Judge(at.name)
	if err := verdict.Refusal(at.name); err != nil && (n.Keeps == nil || !n.Keeps(at.name)) {
		return nil, invalid(at.path, "%v", err)
	}
	if text := verdict.Warning(); text != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %s", at.path, text))
	}
	return warnings, nil
}

// Names are the resources that the specification limits.
func (s *ResourceQuotaSpec) Names() map[resource.Name]bool { return setOf(s.names()) }

func (s *ResourceQuotaSpec) names() (list []namedAt) {
	list = appendNames(list, "spec.hard", s.Hard)
	list = appendNames(list, "spec.soft", s.Soft)
	return appendNames(list, "spec.perUser", s.PerUser)
}

// Names are the resources that the tree counts or limits; none where the spec
// cannot be read.
func (t *QuotaTree) Names() map[resource.Name]bool { return setOf(t.names()) }

func (t *QuotaTree) names() (list []namedAt) {
	var spec struct {
		ResourceNames []resource.Name                       `json:"resourceNames"`
		Nodes         map[string]map[string]json.RawMessage `json:"nodes"`
	}
	if err := json.Unmarshal(t.Spec, &spec); err != nil {
		return nil
	}
	for i, name := range spec.ResourceNames {
		list = append(list, namedAt{fmt.Sprintf("spec.resourceNames[%d]", i), name})
	}
	for _, node := range sortedKeys(spec.Nodes) {
		for _, field := range []string{"quota", "borrowingLimit", "lendingLimit", "cap", "perOwner"} {
			var amounts map[resource.Name]json.RawMessage
			if raw := spec.Nodes[node][field]; len(raw) > 0 && json.Unmarshal(raw, &amounts) == nil {
				list = appendNames(list, key("spec.nodes", node)+"."+field, amounts)
			}
		}
	}
	return list
}

func appendNames[V any](list []namedAt, path string, amounts map[resource.Name]V) []namedAt {
	for _, name := range sortedKeys(amounts) {
		list = append(list, namedAt{key(path, string(name)), name})
	}
	return list
}

func setOf(list []namedAt) map[resource.Name]bool {
	set := make(map[resource.Name]bool, len(list))
	for _, at := range list {
		set[at.name] = true
	}
	return set
}
