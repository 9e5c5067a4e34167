package work

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// RestoreForm is UseForm for a record: the unit has the form that the record's writer has
// chosen.
func (u *Unit) RestoreForm(number int) error {
	switch {
	case number == u.Number:
		return nil
	case number < 0 || number >= len(u.Forms):
		return fmt.Errorf("alternative: %d, and its unit has %d", number, max(0, len(u.Forms)-1))
	}
	u.UseForm(number)
	return nil
}

// DemandKey is equal for units whose forms have equal shapes.
func (u *Unit) DemandKey() string { return u.joined(func(f *form.Form) string { return f.Shape }) }

// ChargesKey is equal for units whose forms have equal charge keys.
func (u *Unit) ChargesKey() string { return u.joined(func(f *form.Form) string { return f.ChargeKey }) }

// joined joins the keys of all forms.
func (u *Unit) joined(of func(*form.Form) string) string {
	if u.Forms == nil {
		return of(&u.Form)
	}
	keys := make([]string, len(u.Forms))
	for i := range u.Forms {
		keys[i] = of(&u.Forms[i])
	}
	return strings.Join(keys, " or ")
}

// AsksFor reports whether a form of the unit is charged for a resource.
func (u *Unit) AsksFor(name resource.Name) bool {
	return u.Charge.Request[name] != 0 || slices.ContainsFunc(u.Forms, func(f form.Form) bool { return f.Charge.Request[name] != 0 })
}

// Requested returns the amounts of the unit's present form, as written.
func (u *Unit) Requested() map[resource.Name]string {
	var spec *api.AllocationSpec
	if u.Job != nil {
		spec = &u.Job.Doc.Spec.Template.Spec
	} else {
		spec = &u.Allocation.Spec
	}
	return spec.Form(u.Number).Resources.Requests
}

// Demands returns the demands of all forms, for the room.
func (u *Unit) Demands() (first *place.Unit, others []*place.Unit) {
	if u.Forms == nil {
		return &u.Demand, nil
	}
	for i := range u.Forms[1:] {
		others = append(others, &u.Forms[1+i].Demand)
	}
	return &u.Forms[0].Demand, others
}
