package histories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterd/muster/api"
)

// Verdict is a judgement of a history.
type Verdict struct {
	// Problems name what no order of the operations explains.
	Problems []string
	// Undecided are parts that were too hard to search in the time given.
	Undecided []string
	// Parts counts the names, devices and namespaces that were searched.
	Parts int
}

// Judge checks a history, in which limits are the most devices that each
// namespace may have. patience bounds the search of each part.
//
// Devices and quotas are judged by what clients know for sure: an object has
// its devices from the answer that first shows them to the first call of a
// release or an eviction that may be about it. Where any order explains a history, this one
// does, since it takes as late and gives back as early as can be.
func Judge(history []Op, limits map[string]int, patience time.Duration) Verdict {
	var v Verdict
	groups := byName(history)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		v.search("name "+name, nameModel, lives(groups[name]), patience)
	}
	devices, namespaces := holdings(groups)
	for _, device := range slices.Sorted(maps.Keys(devices)) {
		v.search("device "+device, deviceModel, devices[device], patience)
	}
	for _, namespace := range slices.Sorted(maps.Keys(limits)) {
		v.search("quota of "+namespace, quotaModel(limits[namespace]), namespaces[namespace], patience)
	}
	return v
}

func (v *Verdict) search(what string, m porcupine.Model, history []porcupine.Operation, patience time.Duration) {
	v.Parts++
	result, info := porcupine.CheckOperationsVerbose(m, history, patience)
	switch result {
	case porcupine.Unknown:
		v.Undecided = append(v.Undecided, what)
	case porcupine.Illegal:
		v.Problems = append(v.Problems, what+": no order explains\n"+tell(m, history, info))
	}
}

// tell shows a history, and which operations the longest explanation leaves
// out.
func tell(m porcupine.Model, history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	explained := map[int]bool{}
	for _, partition := range info.PartialLinearizations() {
		var longest []int
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
		for _, at := range longest {
			explained[at] = true
		}
	}
	var b strings.Builder
	for i, o := range history {
		mark := " "
		if !explained[i] {
			mark = "!"
		}
		fmt.Fprintf(&b, "  %s %9d µs %s\n", mark, o.Call/1000, m.DescribeOperation(o.Input, o.Output))
	}
	return b.String()
}

// lives are the operations of one name for its model. Reads that had no answer
// tell nothing.
func lives(group []Op) []porcupine.Operation {
	var out []porcupine.Operation
	for _, o := range group {
		if o.Verb == Read && o.Answer == Lost {
			continue
		}
		end := int64(o.Return)
		if o.Answer == Lost {
			end = forever
		}
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: end})
		if o.Verb == Submit && o.Answer == Shown {
			o.Verb = Read
			out = append(out, porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: end})
		}
	}
	return out
}

// object is what clients know of one object.
type object struct {
	uid, namespace string
	gpus           int
	devices        []string
	submitted      time.Duration // called
	known          time.Duration // first seen running
	released       time.Duration // first called, or never
}

const never = time.Duration(forever)

// objects finds what was running, among the operations of one name.
func objects(group []Op) []*object {
	byUID := map[string]*object{}
	var found []*object
	for _, o := range group {
		if o.Answer != Shown || o.Phase != api.Running || o.Verb != Submit && o.Verb != Read {
			continue
		}
		known := byUID[o.UID]
		if known == nil {
			known = &object{uid: o.UID, namespace: o.Namespace, gpus: len(o.Devices), devices: o.Devices, known: o.Return, released: never}
			byUID[o.UID], found = known, append(found, known)
		}
		known.known = min(known.known, o.Return)
	}
	// The call of its submit, where that is known; else it may be any.
	for _, o := range group {
		if known := byUID[o.UID]; known != nil && o.Verb == Submit {
			known.submitted = o.Call
		}
	}
	for _, known := range found {
		for _, o := range group {
			may := o.Answer == Lost || o.Answer == Shown && (o.UID == "" || o.UID == known.uid)
			if (o.Verb == Release || o.Verb == Evict) && may && (o.Answer == Lost || o.Return >= known.submitted) {
				known.released = min(known.released, max(o.Call, known.submitted))
			}
		}
	}
	return found
}

// holdings are the comings and goings at each device and in each namespace.
func holdings(groups map[string][]Op) (devices, namespaces map[string][]porcupine.Operation) {
	devices, namespaces = map[string][]porcupine.Operation{}, map[string][]porcupine.Operation{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		for _, o := range objects(groups[name]) {
			if o.released <= o.known {
				continue // it may have been over before anybody knew
			}
			for _, d := range o.devices {
				devices[d] = append(devices[d], o.holds(1)...)
			}
			namespaces[o.namespace] = append(namespaces[o.namespace], o.holds(o.gpus)...)
		}
	}
	return devices, namespaces
}

// holds is the object's coming, and its going if it was released.
func (o *object) holds(units int) []porcupine.Operation {
	point := func(at time.Duration, units int) porcupine.Operation {
		return porcupine.Operation{Input: take{o.uid, units}, Call: int64(at), Return: int64(at)}
	}
	if o.released == never {
		return []porcupine.Operation{point(o.known, units)}
	}
	return []porcupine.Operation{point(o.known, units), point(o.released, -units)}
}
