package edit

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Classes is the kind PriorityClass. Work keeps the values that its class had at the
// submission, so a class may be changed and deleted while work names it.
var Classes = Kind[api.PriorityClass]{
	Noun: "priority class", Prefix: record.PriorityClassesPrefix, Decode: api.DecodePriorityClass, Codec: AsObject, WakesNobody: true,
	Meta: func(c *api.PriorityClass) *api.ObjectMeta { return &c.Metadata },
	Typed: func(c *api.PriorityClass) api.PriorityClass {
		return api.PriorityClass{APIVersion: api.APIVersion, Kind: api.KindPriorityClass, Spec: c.Spec}
	},
	Judge: func(v View, _ *Kept[api.PriorityClass], c *api.PriorityClass, _ *Write) *api.Status {
		other := DefaultClass(v.Objects.Classes)
		if !c.Spec.GlobalDefault || other == nil || other.Object.Metadata.Name == c.Metadata.Name {
			return nil
		}
		return api.Errorf(409, "spec.globalDefault: class %s has it already, and one class alone can: take it from class %s first", other.Object.Metadata.Name, other.Object.Metadata.Name).Because(api.FailedPrecondition)
	},
	Undeletable: func(_ View, name string) *api.Status {
		if _, builtIn := api.BuiltInPriority(name); !builtIn {
			return nil
		}
		return api.Errorf(409, "priority class %s is built in, and no operator has changed it", name).Because(api.FailedPrecondition)
	},
}

// DefaultClass is the class of work that names none; nil where no class is the default.
// Its time is in proportion to the classes that operators have written.
func DefaultClass(classes *Table[api.PriorityClass]) *Kept[api.PriorityClass] {
	for _, name := range classes.Names() {
		if k := classes.Get(name); k.Object.Spec.GlobalDefault {
			return k
		}
	}
	return nil
}
