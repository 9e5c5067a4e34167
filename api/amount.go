package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// CheckResource reports whether Muster allocates a resource: cpu,
// muster.io/cores, memory, ephemeral-storage, nvidia.com/gpu, or one of the families
// hugepages-<size> and nvidia.com/mig-<profile>. A name has one spelling, so
// that requests, limits and quotas of it meet.
func CheckResource(name resource.Name) error {
	switch name {
	case resource.CPU, resource.Cores, resource.Memory, resource.GPU, resource.EphemeralStorage:
		return nil
	case resource.Pods:
		return errors.New("each member counts as one of the pods of its node: leave the resource out")
	}
	if _, ok, err := name.HugepageSize(); ok {
		return err
	}
	if resource.IsGPUModel(name) { // of quotas: see amounts
		return nil
	}
	profile, ok, err := name.MIGProfile()
	switch {
	case !ok:
		return unknownResource(name)
	case err == nil && resource.MIG(profile) != name:
		return fmt.Errorf("%q: want the spelling %q", clip(string(name)), resource.MIG(profile))
	}
	return err
}

// unknownResource is the refusal of a request for a resource that does not exist.
func unknownResource(name resource.Name) error {
	const allocated = "this version allocates cpu, muster.io/cores, memory, ephemeral-storage, hugepages-<size>, nvidia.com/gpu, nvidia.com/mig-<profile> and the names of `muster get resources`"
	if near := registry.New().Nearest(name); near != "" && near != resource.Pods {
		return fmt.Errorf("unknown resource; is %q meant? (%s)", near, allocated)
	}
	return errors.New("unknown resource: " + allocated)
}

// ParseAmount reads a quantity of a resource into its base unit: millicores,
// cores, bytes, device-milli or instances. A counted amount must be whole, and
// huge pages whole pages; the error does not name the resource.
func ParseAmount(name resource.Name, text string) (int64, error) {
	if IsForeignName(name) {
		return limit(name, text)
	}
	if err := CheckResource(name); err != nil {
		return 0, err
	}
	amount, err := resource.ParseAmount(name, text)
	if err != nil {
		return 0, errors.Unwrap(err)
	}
	if _, mig, _ := name.MIGProfile(); (mig || name == resource.Cores) && !whole(text) {
		return 0, fmt.Errorf("%q is not a whole number", clip(text))
	}
	if size, huge, _ := name.HugepageSize(); huge && amount%int64(size) != 0 {
		return 0, fmt.Errorf("%q is not a multiple of the page size %s", clip(text), resource.FormatBytes(size))
	}
	return amount, nil
}

// whole reports whether a quantity is a whole number: resource.ParseAmount
// rounds up.
func whole(text string) bool {
	milli, err := resource.ParseQuantity(text, 1000)
	return err == nil && milli%1000 == 0
}

// IsForeignName reports whether a name may be that of a resource that nodes declare or
// that the whole cluster has: a name with a domain other than Muster's own, of no family
// that Muster allocates, and not a misspelling of one. The leader knows whether there is
// such a resource.
func IsForeignName(name resource.Name) bool {
	return foreign(name) && resource.IsExtended(name) && registry.New().Nearest(name) == ""
}

// most is the greatest amount that one member may ask for.
func most(name resource.Name) int64 {
	switch name {
	case resource.CPU:
		return int64(resource.MaxCPU)
	case resource.Cores:
		return resource.MaxCores
	case resource.GPU:
		return resource.MaxGPUs * int64(resource.WholeDevice)
	}
	if _, mig, _ := name.MIGProfile(); mig {
		return resource.MaxMIG
	}
	if IsForeignName(name) {
		return resource.MaxCount
	}
	return int64(resource.MaxMemory) // also in huge pages
}

// exact reports whether a resource's limit must equal its request, as
// Kubernetes asks of resources that cannot be overcommitted.
func exact(name resource.Name) bool {
	return name != resource.CPU && name != resource.Memory && name != resource.GPU && name != resource.EphemeralStorage
}

// amounts reads quantities into base units, and checks each against the most that one
// member may ask for.
func amounts(path string, quantities map[resource.Name]string) (resource.Vector, *Status) {
	var faults faults
	faults.add(atMost(path, len(quantities), MaxResources))
	v := make(resource.Vector, len(quantities)+1)
	for _, name := range sortedKeys(quantities) {
		text := quantities[name]
		at := key(path, string(name))
		if resource.IsGPUModel(name) {
			faults.add(invalid(at, "quotas count it, no request names it: request %s, and name the model in spec.resources.gpu.model", resource.GPU))
			continue
		}
		amount, err := ParseAmount(name, text)
		if err != nil {
			faults.add(invalid(at, "%v", err))
			continue
		}
		if most := most(name); amount > most {
			faults.add(invalid(at, "%q is more than %s, the most one member may ask for", clip(text), resource.FormatAmount(name, most)))
		}
		if whole := int64(resource.WholeDevice); name == resource.GPU && amount > whole && amount%whole != 0 {
			faults.add(invalid(at, "%q is neither whole devices nor a share of one: want a whole number, or less than 1", clip(text)))
		}
		v[name] = amount
	}
	return v, faults.status()
}

// AmountsAs is Amounts, with each amount that is as requested in the words of the
// request.
func AmountsAs(v resource.Vector, requested map[resource.Name]string) map[resource.Name]string {
	out := Amounts(v)
	for name, text := range requested {
		if amount, err := ParseAmount(name, text); err == nil && amount != 0 && amount == v[name] {
			out[name] = text
		}
	}
	return out
}

// Forms are the units in which all summands of a sum were written, by resource: "m"
// where each was written as 8000m; anyForm where they differ.
type Forms map[resource.Name]string

// anyForm is the form of summands that were written in different units.
const anyForm = "?"

// Note takes the forms of one summand: requested has its amounts as they were written.
func (f Forms) Note(v resource.Vector, requested map[resource.Name]string) {
	for name, amount := range v {
		if amount == 0 {
			continue
		}
		form := anyForm
		if text := requested[name]; text != "" {
			if given, err := ParseAmount(name, text); err == nil && given == amount {
				form = strings.TrimLeft(text, "0123456789")
			}
			if strings.ContainsFunc(form, func(r rune) bool { return !unicode.IsLetter(r) }) {
				form = anyForm // a fraction, or a number with an exponent
			}
		}
		if before, noted := f[name]; noted && before != form {
			form = anyForm
		}
		f[name] = form
	}
}

// Amounts prints a sum: in the unit of its summands where they have one and the sum is
// a whole number of it, else as Amounts does.
func (f Forms) Amounts(sum resource.Vector) map[resource.Name]string {
	out := Amounts(sum)
	for name := range out {
		form, noted := f[name]
		if !noted || form == anyForm || form == "" {
			continue
		}
		unit, err := ParseAmount(name, "1"+form)
		if err == nil && unit > 0 && sum[name]%unit == 0 {
			out[name] = strconv.FormatInt(sum[name]/unit, 10) + form
		}
	}
	return out
}

// Amounts prints a vector the way people write quantities; zeros are left out.
func Amounts(v resource.Vector) map[resource.Name]string {
	out := make(map[resource.Name]string, len(v))
	for _, name := range v.Names() {
		if v[name] != 0 {
			out[name] = resource.FormatAmount(name, v[name])
		}
	}
	return out
}

// errorBelow is the error without the name of the resource, which the field names.
func errorBelow(err error) error {
	if below := errors.Unwrap(err); below != nil {
		return below
	}
	return err
}
