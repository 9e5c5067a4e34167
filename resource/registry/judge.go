package registry

import (
	"fmt"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/spelling"
)

// maxName bounds the names that are compared, in bytes: a longer one is near to
// none. It is the bound of a label key, 253 + "/" + 63.
const maxName = 317

// Verdict is the judgement of a name.
type Verdict struct {
	Code Code
	// Near is the known name that is probably meant, of Misspelt.
	Near resource.Name
	// Fault says what is wrong with a name of a known family, of Malformed.
	Fault error
	// Nodes counts the registered nodes, of NotHandedOut.
	Nodes int
}

// Code is the kind of a Verdict.
type Code uint8

// The verdicts.
const (
	// Known: some node hands the resource out, or it is built in.
	Known Code = iota
	// Misspelt: the name is none, and one edit away from Near, or Near without its
	// domain.
	Misspelt
	// Malformed: the name begins as those of a family and is none of it.
	Malformed
	// NotHandedOut: the name is of a family of which no registered node has this
	// member.
	NotHandedOut
	// Unknown: no resource has the name, and none is near to it.
	Unknown
)

// Judge judges a name that a person wrote. Models of GPUs differ by one letter (a100, h100,
// h200), so none is a misspelling of another.
func (r *Registry) Judge(name resource.Name) Verdict {
	if _, known := r.entries[name]; known {
		return Verdict{Code: Known}
	}
	_, huge, hugeErr := name.HugepageSize()
	_, mig, migErr := name.MIGProfile()
	_, model, modelErr := name.GPUModel()
	switch {
	case hugeErr != nil:
		return Verdict{Code: Malformed, Fault: hugeErr}
	case migErr != nil:
		return Verdict{Code: Malformed, Fault: migErr}
	case modelErr != nil:
		return Verdict{Code: Malformed, Fault: modelErr}
	case huge || mig || model:
		return Verdict{Code: NotHandedOut, Nodes: r.nodes}
	}
	if near := r.near(name); near != "" {
		return Verdict{Code: Misspelt, Near: near}
	}
	return Verdict{Code: Unknown, Nodes: r.nodes}
}

// near is the known name that a misspelt one probably means: the same without its
// domain, then the name one edit away; "" where none is.
func (r *Registry) near(name resource.Name) resource.Name {
	if len(name) > maxName || name == "" {
		return ""
	}
	entries := r.Entries()
	names := make([]string, len(entries))
	for i, e := range entries {
		if names[i] = string(e.Name); lastPart(e.Name) == string(name) {
			return e.Name
		}
	}
	return resource.Name(spelling.Nearest(string(name), names, 1))
}

// Nearest is the known name that a person may have meant who asked for a resource
// that does not exist: it may be further away than of Misspelt, since the request
// is refused either way. "" where none is near.
func (r *Registry) Nearest(name resource.Name) resource.Name {
	if near := r.near(name); near != "" {
		return near
	}
	if len(name) > maxName {
		return ""
	}
	var names []string
	for _, e := range r.Entries() {
		names = append(names, string(e.Name))
	}
	return resource.Name(spelling.Nearest(string(name), names, min(3, len(name)/3)))
}

// Refusal says why a limit must not name the resource, nil where it may.
func (v Verdict) Refusal(name resource.Name) error {
	switch v.Code {
	case Misspelt:
		return fmt.Errorf("no resource is named %q; is %q meant? (the query allowUnknownResources=true, or muster apply --allow-unknown-resources, keeps the name)", name, v.Near)
	case Malformed:
		return v.Fault
	case Known, NotHandedOut, Unknown:
	}
	return nil
}

// Warning says that a limit of the resource has no effect now, "" where it has.
func (v Verdict) Warning() string {
	switch v.Code {
	case NotHandedOut:
		return fmt.Sprintf("none of %d registered nodes hands it out now, so the amount in use is 0", v.Nodes)
	case Misspelt:
		return fmt.Sprintf("no node hands it out, so the amount in use is always 0; is %q meant?", v.Near)
	case Unknown:
		return "no node hands it out, so the amount in use is always 0"
	case Known, Malformed:
	}
	return ""
}
