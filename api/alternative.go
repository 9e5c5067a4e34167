package api

import (
	"fmt"
	"maps"

	"github.com/musterd/muster/resource"
)

// MaxAlternatives bounds the alternatives of a specification.
const MaxAlternatives = 7

// Alternative is another request that would do: its fields replace those of the
// specification.
type Alternative struct {
	// Resources are the amounts that the member asks for. Left out, they are those of
	// the specification.
	Resources *Requirements `json:"resources,omitempty"`
	// GPU restricts the devices. Left out, the restriction is that of
	// scheduling.gpu; an empty one restricts nothing.
	GPU *GPUConstraint `json:"gpu,omitempty"`
	// NodeSelector is a set of labels that a node must have, all of them, at most 64.
	// Left out or empty, it is that of scheduling.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" example:"{zone: b}"`
}

// Forms returns the requests of a specification in the order in which they are tried:
// the specification itself, then one with the fields of each alternative. None of them
// has alternatives.
func (s *AllocationSpec) Forms() []AllocationSpec {
	first := *s
	first.Alternatives = nil
	forms := make([]AllocationSpec, 1, 1+len(s.Alternatives))
	forms[0] = first
	for _, a := range s.Alternatives {
		forms = append(forms, first.with(a))
	}
	return forms
}

// with is the specification with the fields of an alternative.
func (s AllocationSpec) with(a Alternative) AllocationSpec {
	if a.Resources != nil {
		s.Resources = *a.Resources
	}
	if a.GPU != nil {
		s.Scheduling.GPU = a.GPU
	}
	if len(a.NodeSelector) > 0 {
		s.Scheduling.NodeSelector = maps.Clone(a.NodeSelector)
	}
	return s
}

// Form is the request with a number of Forms; that of the specification itself where
// there are fewer.
func (s *AllocationSpec) Form(number int) AllocationSpec {
	forms := s.Forms()
	if number < 0 || number >= len(forms) {
		number = 0
	}
	return forms[number]
}

// checkAlternatives validates the alternatives of a specification. Faults name the field
// of the alternative.
func checkAlternatives(path string, s *AllocationSpec) *Status {
	var faults faults
	at := path + ".alternatives"
	if status := atMost(at, len(s.Alternatives), MaxAlternatives); status != nil {
		return status
	}
	forms := s.Forms()
	for i, a := range s.Alternatives {
		own := fmt.Sprintf("%s[%d]", at, i)
		if a.Resources == nil && a.GPU == nil && len(a.NodeSelector) == 0 {
			faults.add(invalid(own, "empty: it asks for what the specification asks for; give resources, gpu or nodeSelector"))
			continue
		}
		faults.add(checkReplaced(own, path, a, forms[1+i]))
	}
	return faults.status()
}

// checkReplaced validates the fields at own that replace those of the specification at
// path, and the request of form, in which they do. A fault of the specification itself is
// left to its own check.
func checkReplaced(own, path string, a Alternative, form AllocationSpec) *Status {
	var faults faults
	faults.add(checkLabels(own+".nodeSelector", a.NodeSelector))
	asked := path + ".resources"
	if a.Resources != nil {
		asked = own + ".resources"
	}
	amounts, status := requested(asked, &form.Resources)
	if status != nil {
		if a.Resources != nil {
			faults.add(status)
		}
		return faults.status()
	}
	var request resource.Request
	if a.GPU != nil {
		form.Scheduling.GPU = nil
		faults.add(gpuDetails(own+".gpu", a.GPU, &request))
	}
	if placementDetails(path+".scheduling", &form.Scheduling, &request) != nil {
		return faults.status()
	}
	if a.Resources != nil {
		faults.add(fill(own+".resources.requests", amounts, &request))
	} else if fill(asked, amounts, &request) != nil {
		return faults.status()
	}
	if err := request.Validate(); err != nil {
		faults.add(invalid(own+".resources.requests", "%v", err))
	}
	return faults.status()
}
