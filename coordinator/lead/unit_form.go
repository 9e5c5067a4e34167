package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// restoreForm is useForm for a record: the unit has the form that was chosen for it.
func (u *unit) restoreForm(number int) error {
	switch {
	case number == u.number:
		return nil
	case number < 0 || number >= len(u.forms):
		return fmt.Errorf("alternative: %d, and its unit has %d", number, max(0, len(u.forms)-1))
	}
	u.useForm(number)
	return nil
}

// demandKey is equal for units whose forms have equal shapes.
func (u *unit) demandKey() string { return u.joined(func(f *form.Form) string { return f.Shape }) }

// chargesKey is equal for units whose forms have equal charge keys.
func (u *unit) chargesKey() string { return u.joined(func(f *form.Form) string { return f.ChargeKey }) }

// joined joins the keys of all forms.
func (u *unit) joined(of func(*form.Form) string) string {
	if u.forms == nil {
		return of(&u.Form)
	}
	keys := make([]string, len(u.forms))
	for i := range u.forms {
		keys[i] = of(&u.forms[i])
	}
	return strings.Join(keys, " or ")
}

// asksFor reports whether a form of the unit is charged for a resource.
func (u *unit) asksFor(name resource.Name) bool {
	return u.Charge.Request[name] != 0 || slices.ContainsFunc(u.forms, func(f form.Form) bool { return f.Charge.Request[name] != 0 })
}

// requested are the amounts of the form that the unit has, as they were written.
func (u *unit) requested() map[resource.Name]string {
	var spec *api.AllocationSpec
	if u.job != nil {
		spec = &u.job.doc.Spec.Template.Spec
	} else {
		spec = &u.allocation.Spec
	}
	return spec.Form(u.number).Resources.Requests
}

// demands are those of all forms, for the room.
func (u *unit) demands() (first *place.Unit, others []*place.Unit) {
	if u.forms == nil {
		return &u.Demand, nil
	}
	for i := range u.forms[1:] {
		others = append(others, &u.forms[1+i].Demand)
	}
	return &u.forms[0].Demand, others
}
