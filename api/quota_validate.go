package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterd/muster/resource"
)

// MaxGroupName is the longest name of a tree's node, in bytes, and
// MaxForestTrees the number of trees of the largest forest.
const (
	MaxGroupName   = 253
	MaxForestTrees = 256
)

// IsTreeName reports whether s may name a quota tree or a forest: 1..63
// letters, digits, '-', '_' and '.', alphanumeric at both ends. Unlike other
// objects they may bear capitals: spec/quota-manager.txt writes TestTree.
func IsTreeName(s string) bool { return resource.IsLabelName(s) }

const treeRule = "want 1..63 letters, digits, '-', '_' or '.', alphanumeric at both ends"

// Validate refuses a resource quota that contradicts itself or has an amount
// that is none, with 422, the field and the value. Resources that Muster does
// not hand out are counts.
func (q *ResourceQuota) Validate() *Status {
	var faults faults
	faults.add(checkMeta("metadata", q.Metadata, MaxAllocationName))
	hard, status := limits("spec.hard", q.Spec.Hard)
	if status != nil {
		faults.add(status)
	}
	soft, status := limits("spec.soft", q.Spec.Soft)
	if status != nil {
		faults.add(status)
	}
	for _, name := range soft.Names() {
		if most, limited := hard[name]; limited && soft[name] > most {
			faults.add(invalid(key("spec.soft", string(name)), "%q is more than the hard limit %q", clip(q.Spec.Soft[name]), clip(q.Spec.Hard[name])))
		}
	}
	perUser, status := limits("spec.perUser", q.Spec.PerUser)
	faults.add(status)
	for _, name := range perUser.Names() {
		if most, limited := hard[name]; limited && perUser[name] > most {
			faults.add(invalid(key("spec.perUser", string(name)), "%q is more than the hard limit %q", clip(q.Spec.PerUser[name]), clip(q.Spec.Hard[name])))
		}
	}
	faults.add(q.Spec.checkScopes())
	return faults.status()
}

// limits reads quantities of any resources into base units;
// resources that Muster does not hand out are counted.
func limits(path string, quantities map[resource.Name]string) (resource.Vector, *Status) {
	var faults faults
	faults.add(atMost(path, len(quantities), MaxQuotaResources))
	v := make(resource.Vector, len(quantities))
	for _, name := range sortedKeys(quantities) {
		at := key(path, string(name))
		amount, err := limit(name, quantities[name])
		if err != nil {
			faults.add(invalid(at, "%v", err))
			continue
		}
		v[name] = amount
	}
	return v, faults.status()
}

func limit(name resource.Name, text string) (int64, error) {
	if !foreign(name) {
		return ParseAmount(name, text)
	}
	if !IsLabelKey(string(name)) {
		return 0, fmt.Errorf("%q is not a resource: %s", clip(string(name)), labelKeyRule)
	}
	count, err := resource.ParseQuantity(text, 1)
	if err != nil {
		return 0, err
	}
	if strings.ContainsAny(text, ".-m") && !whole(text) {
		return 0, fmt.Errorf("%q is not a whole number", clip(text))
	}
	return count, nil
}

// foreign reports whether a resource is none of those that Muster hands out, and no
// misspelling of them.
func foreign(name resource.Name) bool {
	switch name {
	case resource.CPU, resource.Cores, resource.Memory, resource.GPU, resource.EphemeralStorage:
		return false
	}
	_, huge, _ := name.HugepageSize()
	_, mig, _ := name.MIGProfile()
	return !huge && !mig && !resource.IsGPUModel(name)
}

// The scopes of resource quotas. A unit is terminating where it has a deadline
// (spec.activeDeadlineSeconds).
const (
	ScopeTerminating    = "Terminating"
	ScopeNotTerminating = "NotTerminating"
	ScopePriorityClass  = "PriorityClass"
)

// checkScopes refuses scopes that no unit could match, as Kubernetes does.
func (s *ResourceQuotaSpec) checkScopes() *Status {
	given := map[string]bool{}
	contradicts := func(path, scope string) *Status {
		other := ScopeTerminating
		if scope == other {
			other = ScopeNotTerminating
		}
		if given[other] {
			return invalid(path, "%q contradicts %q: no unit could fall under both", scope, other)
		}
		given[scope] = true
		return nil
	}
	var faults faults
	faults.add(atMost("spec.scopes", len(s.Scopes), MaxTerms))
	for i, scope := range s.Scopes {
		path := fmt.Sprintf("spec.scopes[%d]", i)
		switch scope {
		case ScopeTerminating, ScopeNotTerminating:
		case ScopePriorityClass:
			faults.add(invalid(path, "%q needs an operator: set it in spec.scopeSelector", scope))
		default:
			faults.add(invalid(path, "%q: want Terminating or NotTerminating", clip(scope)))
		}
		faults.add(contradicts(path, scope))
	}
	if s.ScopeSelector == nil {
		return faults.status()
	}
	faults.add(atMost("spec.scopeSelector.matchExpressions", len(s.ScopeSelector.MatchExpressions), MaxTerms))
	for i, e := range s.ScopeSelector.MatchExpressions {
		path := fmt.Sprintf("spec.scopeSelector.matchExpressions[%d]", i)
		faults.add(e.check(path))
		if e.ScopeName != ScopePriorityClass {
			faults.add(contradicts(path+".scopeName", e.ScopeName))
		}
	}
	return faults.status()
}

func (e ScopeExpression) check(path string) *Status {
	switch e.ScopeName {
	case ScopeTerminating, ScopeNotTerminating:
		if e.Operator != "Exists" {
			return invalid(path+".operator", "%q: the scope %s takes Exists alone", clip(e.Operator), e.ScopeName)
		}
	case ScopePriorityClass:
	default:
		return invalid(path+".scopeName", "%q: want PriorityClass, Terminating or NotTerminating", clip(e.ScopeName))
	}
	switch e.Operator {
	case "In", "NotIn":
		if len(e.Values) == 0 {
			return invalid(path+".values", "empty: the operator %s needs at least one", e.Operator)
		}
		if status := atMost(path+".values", len(e.Values), MaxValues); status != nil {
			return status
		}
		if i := slices.IndexFunc(e.Values, func(v string) bool { return !IsSubdomain(v) }); i >= 0 {
			return invalid(fmt.Sprintf("%s.values[%d]", path, i), "%q is not a priority class: "+subdomainRule, clip(e.Values[i]), 253)
		}
	case "Exists", "DoesNotExist":
		if len(e.Values) > 0 {
			return invalid(path+".values", "%q: the operator %s takes no values", clip(e.Values[0]), e.Operator)
		}
	default:
		return invalid(path+".operator", "%q: want In, NotIn, Exists or DoesNotExist", clip(e.Operator))
	}
	return nil
}

// Validate refuses a tree without a name or a spec. Whether the spec describes
// a tree is coordinator/quota/quotajson's to judge.
func (t *QuotaTree) Validate() *Status {
	var faults faults
	faults.add(checkTreeMeta(t.Metadata))
	switch {
	case len(t.Spec) == 0:
		faults.add(invalid("spec", "required: an object with resourceNames and nodes"))
	case t.Spec[0] != '{':
		faults.add(invalid("spec", "want an object with resourceNames and nodes, got %s", clip(string(t.Spec))))
	}
	return faults.status()
}

// checkTreeMeta validates the metadata of trees and forests.
func checkTreeMeta(m ObjectMeta) *Status {
	switch {
	case m.Name == "":
		return invalid("metadata.name", "required: %s", treeRule)
	case !IsTreeName(m.Name):
		return invalid("metadata.name", "%q is not a name: %s", clip(m.Name), treeRule)
	}
	return checkCluster(m)
}

// checkCluster validates metadata, beside the name, of objects in no
// namespace.
func checkCluster(m ObjectMeta) *Status {
	var faults faults
	if m.Namespace != "" {
		faults.add(invalid("metadata.namespace", "%q: this kind is in no namespace, leave it out", clip(m.Namespace)))
	}
	faults.add(checkMetaBesideName("metadata", m))
	return faults.status()
}

// Validate refuses a forest that names no tree, or one twice.
func (f *QuotaForest) Validate() *Status {
	var faults faults
	faults.add(checkTreeMeta(f.Metadata))
	if n := len(f.Spec.Trees); n < 1 || n > MaxForestTrees {
		faults.add(invalid("spec.trees", "%d trees: want 1..%d", n, MaxForestTrees))
	}
	for i, name := range f.Spec.Trees {
		path := fmt.Sprintf("spec.trees[%d]", i)
		if !IsTreeName(name) {
			faults.add(invalid(path, "%q is not the name of a tree: %s", clip(name), treeRule))
		}
		if slices.Contains(f.Spec.Trees[:i], name) {
			faults.add(invalid(path, "%q is named twice", name))
		}
	}
	return faults.status()
}

// Validate refuses a binding whose name is no namespace or which binds to a name
// that cannot be a group's.
func (b *QuotaBinding) Validate() *Status {
	var faults faults
	switch name := b.Metadata.Name; {
	case name == "":
		faults.add(invalid("metadata.name", "required, the namespace's: %s", labelRule))
	case !IsLabel(name):
		faults.add(invalid("metadata.name", "%q is not a namespace: %s", clip(name), labelRule))
	}
	faults.add(checkCluster(b.Metadata))
	if f := b.Spec.Forest; f != "" && !IsTreeName(f) {
		faults.add(invalid("spec.forest", "%q is not the name of a forest: %s", clip(f), treeRule))
	}
	faults.add(checkGroups("spec.groups", b.Spec.Groups))
	switch b.Spec.Admission {
	case "", "reject", "queue":
		return faults.status()
	}
	faults.add(invalid("spec.admission", "%q: want reject or queue", clip(b.Spec.Admission)))
	return faults.status()
}

// checkGroups validates a map from trees to groups.
func checkGroups(path string, groups map[string]string) *Status {
	if status := atMost(path, len(groups), MaxForestTrees); status != nil {
		return status
	}
	for _, tree := range sortedKeys(groups) {
		if !IsTreeName(tree) {
			return invalid(key(path, tree), "%q is not the name of a tree: %s", clip(tree), treeRule)
		}
		if err := CheckGroup(groups[tree]); err != nil {
			return invalid(key(path, tree), "%v", err)
		}
	}
	return nil
}

// CheckGroup refuses text that cannot name a node of a tree: no text, more than
// MaxGroupName bytes, or characters that cannot be shown.
func CheckGroup(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("empty: want the name of a leaf")
	case len(name) > MaxGroupName:
		return fmt.Errorf("%q has %d bytes, the limit is %d", clip(name), len(name), MaxGroupName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%q holds a character that cannot be shown", clip(name))
	}
	return nil
}

func checkQuotaDemand(path string, d *QuotaDemand) *Status {
	if d == nil {
		return nil
	}
	return checkGroups(path+".groups", d.Groups)
}
