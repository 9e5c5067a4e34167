package service

import (
	"cmp"
	"strconv"

	"github.com/musterd/muster/api"
)

// WrittenClasses is the kind PriorityClass. A class that is built in is there without an
// object, and has no resourceVersion; the first update of it creates its record.
var WrittenClasses = WrittenKind[api.PriorityClass]{
	Kind: KindPriorityClasses, Document: api.KindPriorityClass,
	Listed: Listed[api.PriorityClass]{
		Meta: func(c *api.PriorityClass) *api.ObjectMeta { return &c.Metadata },
		Fields: map[string]func(*api.PriorityClass) string{
			"metadata.name":      func(c *api.PriorityClass) string { return c.Metadata.Name },
			"spec.globalDefault": func(c *api.PriorityClass) string { return strconv.FormatBool(c.Spec.GlobalDefault) },
		},
	},
	decode: api.DecodePriorityClass,
	typed: func(c *api.PriorityClass) {
		c.APIVersion, c.Kind = cmp.Or(c.APIVersion, api.APIVersion), cmp.Or(c.Kind, api.KindPriorityClass)
	},
	bare: func(*api.PriorityClass) {},
	of:   Written.PriorityClasses,
}
