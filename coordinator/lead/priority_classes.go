package lead

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/spelling"
)

// This file resolves the priority classes of new work. Work keeps the values that it got
// at its submission (record.Admitted), so a class that is changed or deleted changes no
// work.

// admitted are the values that new work gets where its document leaves them out: number,
// class and policy are those of the document. nil: nothing is left out. A class that
// nobody has written is refused with 422 and the nearest name.
func (l *Leader) admitted(number *int32, class, policy string) (*record.Admitted, *api.Status) {
	var a record.Admitted
	kept, status := l.classOf(class)
	if status != nil {
		return nil, status
	}
	if kept != nil {
		of := &kept.Object
		if class == "" {
			a.PriorityClass = of.Metadata.Name
		}
		if number == nil {
			a.Priority = &of.Spec.Value
		}
		if policy == "" {
			a.PreemptionPolicy = of.Spec.PreemptionPolicy
		}
	}
	if a == (record.Admitted{}) {
		return nil, nil
	}
	return &a, nil
}

// classOf is the object of a class, or of the default one for "". nil: there is no object,
// and the class is built in or none.
func (l *Leader) classOf(name string) (*edit.Kept[api.PriorityClass], *api.Status) {
	classes := l.objects.Classes
	if name == "" {
		return edit.DefaultClass(classes), nil
	}
	if l.hasClass(name) {
		return classes.Get(name), nil
	}
	known := classes.Names()
	for _, c := range api.NamedPriorities() {
		known = append(known, c.Name)
	}
	slices.Sort(known)
	if near := spelling.Nearest(name, known, 2); near != "" {
		return nil, api.Errorf(422, "spec.priorityClass: there is no class %.128q; is %q meant?", name, near)
	}
	return nil, api.Errorf(422, "spec.priorityClass: there is no class %.128q: muster get priorityclasses lists the classes; an operator may create it", name)
}

// hasClass reports whether a priority class is built in, or an operator has written it.
func (l *Leader) hasClass(name string) bool {
	_, builtIn := api.BuiltInPriority(name)
	return builtIn || l.objects.Classes.Get(name) != nil
}
