// Package quotajson reads quota trees and consumers from the JSON of
// spec/quota-manager.txt, with the tolerance of QUOTA.md section 2. It decides
// what a document says, not whether the nodes of a tree hang together: that is
// reported by package quota.
//
// Beyond that specification a node may have borrowingLimit, lendingLimit, cap
// and perOwner, each an object of amounts, and a consumer an owner.
//
// Input that is wrong is refused with the path of the field (FieldError), and
// so are fields that are unknown, except those of metadata and apiVersion.
package quotajson

import (
	"strconv"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// Tree reads a document of kind QuotaTree.
func Tree(data []byte, units Units) (quota.TreeSpec, error) {
	v, err := parse(data)
	if err != nil {
		return quota.TreeSpec{}, err
	}
	var t quota.TreeSpec
	metadata, spec, err := v.document("QuotaTree")
	if err != nil {
		return quota.TreeSpec{}, err
	}
	if t.Name, err = metadata.name(); err != nil {
		return quota.TreeSpec{}, err
	}
	err = spec.fields(func(key string, member *value) (err error) {
		switch key {
		case "resourceNames":
			t.Resources, err = member.resources()
		case "nodes":
			t.Nodes, err = member.nodes(units)
		default:
			err = member.unknown()
		}
		return err
	})
	if err != nil {
		return quota.TreeSpec{}, err
	}
	return t, nil
}

// Node reads what stands below spec.nodes.NAME.
func Node(data []byte, units Units) (quota.NodeSpec, error) {
	v, err := parse(data)
	if err != nil {
		return quota.NodeSpec{}, err
	}
	return v.node(units)
}

// Consumer reads a document of kind Consumer. Warnings name what was accepted
// though it is not what the specification means: the field "trees:", as its
// sample has it.
func Consumer(data []byte, units Units) (c quota.ConsumerSpec, warnings []string, err error) {
	v, err := parse(data)
	if err != nil {
		return c, nil, err
	}
	_, spec, err := v.document("Consumer")
	if err != nil {
		return c, nil, err
	}
	seen := false
	err = spec.fields(func(key string, member *value) (err error) {
		switch key {
		case "id":
			c.ID, err = member.text()
		case "owner":
			c.Owner, err = member.text()
		case "trees", "trees:":
			if seen {
				return member.fail("the trees are given twice")
			}
			seen = true
			if key != "trees" {
				warnings = append(warnings, member.path+": read as trees")
			}
			c.Demands, err = member.demands(units)
		default:
			err = member.unknown()
		}
		return err
	})
	if err == nil && c.ID == "" {
		err = &FieldError{"spec.id", "missing"}
	}
	if err != nil {
		return quota.ConsumerSpec{}, nil, err
	}
	return c, warnings, nil
}

// Demands reads what stands in spec.trees of a consumer.
func Demands(data []byte, units Units) ([]quota.Demand, error) {
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	return v.demands(units)
}

// document checks the kind and returns the metadata, nil where there are none,
// and the spec.
func (v *value) document(kind string) (metadata, spec *value, err error) {
	found := false
	err = v.fields(func(key string, member *value) error {
		switch key {
		case "kind":
			name, err := member.text()
			if err == nil && name != kind {
				err = member.fail("want %s, found %s", kind, member.is())
			}
			found = true
			return err
		case "metadata":
			metadata = member
		case "spec":
			spec = member
		case "apiVersion":
		default:
			return member.unknown()
		}
		return nil
	})
	switch {
	case err != nil:
	case !found:
		err = &FieldError{"kind", "missing, want " + kind}
	case spec == nil:
		err = &FieldError{"spec", "missing"}
	}
	return metadata, spec, err
}

// name reads metadata.name; v is nil without metadata.
func (v *value) name() (name string, err error) {
	if v != nil {
		err = v.fields(func(key string, member *value) (err error) {
			if key == "name" {
				name, err = member.text()
			}
			return err
		})
	}
	if err == nil && name == "" {
		err = &FieldError{"metadata.name", "missing"}
	}
	return name, err
}

// list reads an array, none for null.
func (v *value) list(one func(member *value) error) error {
	if v.null() {
		return nil
	}
	if v.kind != array {
		return v.fail("want an array, found %s", v.is())
	}
	for i := range v.values {
		if err := one(&v.values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *value) resources() (names []resource.Name, err error) {
	err = v.list(func(member *value) error {
		name, err := member.text()
		if err == nil && name == "" {
			err = member.fail("a resource without a name")
		}
		names = append(names, resource.Name(name))
		return err
	})
	return names, err
}

func (v *value) nodes(units Units) (map[string]quota.NodeSpec, error) {
	nodes := map[string]quota.NodeSpec{}
	if v.null() {
		return nodes, nil
	}
	err := v.fields(func(key string, member *value) (err error) {
		if key == "" {
			return member.fail("a node without a name")
		}
		nodes[key], err = member.node(units)
		return err
	})
	return nodes, err
}

func (v *value) node(units Units) (quota.NodeSpec, error) {
	var n quota.NodeSpec
	err := v.fields(func(key string, member *value) (err error) {
		switch key {
		case "parent":
			n.Parent, err = member.parent()
		case "hard":
			n.Hard, err = member.flag()
		case "quota":
			n.Quota, err = member.vector(units)
		case "borrowingLimit":
			n.Borrowing, err = member.vector(units)
		case "lendingLimit":
			n.Lending, err = member.vector(units)
		case "cap":
			n.Cap, err = member.vector(units)
		case "perOwner":
			n.PerOwner, err = member.vector(units)
		default:
			err = member.unknown()
		}
		return err
	})
	if err == nil && n.Quota == nil {
		err = &FieldError{join(v.path, "quota"), "missing, {} is none"}
	}
	return n, err
}

// parent reads a parent's name, empty for the root: "nil", "" or null.
func (v *value) parent() (string, error) {
	if v.null() {
		return "", nil
	}
	name, err := v.text()
	if name == "nil" {
		name = ""
	}
	return name, err
}

// flag reads true or false, as such or as one of the texts strconv.ParseBool
// knows; null is false.
func (v *value) flag() (bool, error) {
	switch x := v.scalar.(type) {
	case bool:
		return x, nil
	case string:
		if b, err := strconv.ParseBool(x); err == nil {
			return b, nil
		}
	}
	if v.null() {
		return false, nil
	}
	return false, v.fail("want true or false, found %s", v.is())
}

func (v *value) demands(units Units) (demands []quota.Demand, err error) {
	err = v.list(func(member *value) error {
		d, err := member.demand(units)
		demands = append(demands, d)
		return err
	})
	return demands, err
}

func (v *value) demand(units Units) (quota.Demand, error) {
	var d quota.Demand
	grouped := false
	err := v.fields(func(key string, member *value) (err error) {
		switch key {
		case "id": // the consumer's, repeated
			_, err = member.text()
		case "treeName":
			d.Tree, err = member.text()
		case "groupID":
			grouped = true
			d.Group, err = member.text()
		case "request":
			d.Request, err = member.vector(units)
		case "priority":
			d.Priority, err = member.integer()
		case "type":
			d.Type, err = member.integer()
		case "unPreemptable":
			d.Unpreemptable, err = member.flag()
		default:
			err = member.unknown()
		}
		return err
	})
	switch {
	case err != nil:
	case d.Tree == "":
		err = &FieldError{join(v.path, "treeName"), "missing"}
	case !grouped:
		err = &FieldError{join(v.path, "groupID"), "missing"}
	}
	return d, err
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
