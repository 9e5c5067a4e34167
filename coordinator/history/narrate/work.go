package narrate

import (
	"encoding/json"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// work is the request of a unit in numbers, out of the document.
type work struct {
	// sets are the requests of a job's members where these differ, with their numbers.
	sets []formsOf
	// forms are the requests of one member: the specification's own, then those of its
	// alternatives.
	forms                                     []form
	class, preemption, qos, group             string
	selector, affinity, tolerations, topology json.RawMessage
	ttl                                       time.Duration
	// limited: the time that the work runs has a limit, so that scopes of quotas count it as
	// Terminating.
	limited bool
}

// formsOf is the request of each of some members.
type formsOf struct {
	members int
	form    form
}

// formOf is the request of a member of a unit whose members may differ.
func (w *work) formOf(number, index int) form {
	if w != nil {
		for i := range w.sets {
			if index < w.sets[i].members {
				return w.sets[i].form
			}
			index -= w.sets[i].members
		}
	}
	return w.form(number)
}

// sum is the requests and limits of all members of a unit.
func (w *work) sum(number, members int) (requests, limits resource.Vector) {
	if w == nil || w.sets == nil {
		f := w.form(number)
		return scaled(f.request, members), scaled(f.limits, members)
	}
	requests, limits = resource.Vector{}, resource.Vector{}
	for i := range w.sets {
		s := &w.sets[i]
		requests.Add(scaled(s.form.request, s.members))
		limits.Add(scaled(s.form.limits, s.members))
	}
	if len(limits) == 0 {
		limits = nil // as of equal members
	}
	return requests, limits
}

// form is one request of a member.
type form struct {
	request resource.Vector
	cluster resource.Vector // the part of request that no node has
	limits  resource.Vector
}

// form returns the request of a number; that of the specification itself where there are
// fewer.
func (w *work) form(number int) form {
	if w == nil || len(w.forms) == 0 {
		return form{}
	}
	if number < 0 || number >= len(w.forms) {
		number = 0
	}
	return w.forms[number]
}

// workOf reads a specification. class and priority of a job's template are the job's.
func workOf(spec *api.AllocationSpec, ofNodes []resource.Name, class string) (*work, error) {
	w := &work{class: class, preemption: spec.PreemptionPolicy, limited: spec.TTL != ""}
	for _, f := range spec.Forms() {
		one, err := readForm(f, ofNodes)
		if err != nil {
			return nil, err
		}
		w.forms = append(w.forms, one)
	}
	if ttl, err := time.ParseDuration(spec.TTL); err == nil {
		w.ttl = ttl
	}
	s := &spec.Scheduling
	w.selector, w.affinity = jsonOf(s.NodeSelector, len(s.NodeSelector) > 0), jsonOf(s.Affinity, s.Affinity != nil)
	w.tolerations = jsonOf(s.Tolerations, len(s.Tolerations) > 0)
	g := spec.Gang()
	if g != nil {
		w.group = g.GroupID
	}
	w.topology = topologyOf(s, g)
	w.qos = qosOf(&spec.Resources)
	return w, nil
}

// readForm reads one request.
func readForm(f api.AllocationSpec, ofNodes []resource.Name) (form, error) {
	request, status := api.MemberRequest(f)
	if status != nil {
		return form{}, status
	}
	one := form{request: request.Vector(), limits: limitsOf(f.Resources.Limits)}
	one.cluster = api.SplitForeign(&request, f, ofNodes)
	return one, nil
}

// topologyOf is the part of a specification that spreads members over domains, or
// gathers them.
func topologyOf(s *api.Scheduling, g *api.GangScheduling) json.RawMessage {
	rules := struct {
		Spread   []api.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
		Levels   []api.TopologyLevel            `json:"topology,omitempty"`
		Subgroup *api.Subgroup                  `json:"subgroup,omitempty"`
	}{Spread: s.TopologySpreadConstraints}
	if g != nil {
		rules.Levels, rules.Subgroup = g.Topology, g.Subgroup
	}
	return jsonOf(rules, len(rules.Spread)+len(rules.Levels) > 0 || rules.Subgroup != nil)
}

// limitsOf reads limits; an amount that cannot be read was refused at the submission.
func limitsOf(texts map[resource.Name]string) resource.Vector {
	var v resource.Vector
	for name, text := range texts {
		if amount, err := resource.ParseAmount(name, text); err == nil {
			if v == nil {
				v = resource.Vector{}
			}
			v[name] = amount
		}
	}
	return v
}

// qosOf is the class of Kubernetes: Guaranteed where each request is its limit,
// BestEffort where there is none, else Burstable.
func qosOf(r *api.Requirements) string {
	requests, limits := limitsOf(r.Requests), limitsOf(r.Limits)
	if len(requests)+len(limits) == 0 {
		return "BestEffort"
	}
	if len(limits) == 0 {
		return "Burstable"
	}
	for name, amount := range requests {
		if limit, given := limits[name]; !given || limit != amount {
			return "Burstable"
		}
	}
	return "Guaranteed"
}

// jsonOf encodes a value that was decoded before; nil where it is absent.
func jsonOf(v any, present bool) json.RawMessage {
	if !present {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("narrate: encode a part of a document: " + err.Error())
	}
	return text
}
