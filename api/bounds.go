package api

// The greatest numbers of entries of a document's lists and maps. A document
// that is larger is refused with 422, the field and both numbers.
const (
	// MaxLabels bounds the labels of an object, and those that a selector names.
	MaxLabels = 64
	// MaxAnnotations bounds their number; their bytes are bounded besides.
	MaxAnnotations = 256
	// MaxResources bounds the resources that a member asks for.
	MaxResources = 64
	// MaxQuotaResources bounds the resources that a quota limits.
	MaxQuotaResources = 256
	// MaxTolerations bounds the tolerations of a member.
	MaxTolerations = 64
	// MaxTerms bounds the terms of a selector, and the expressions of a term.
	MaxTerms = 64
	// MaxValues bounds the values of an expression.
	MaxValues = 256
)

// atMost refuses a list or map with more entries than it may have.
func atMost(path string, entries, most int) *Status {
	if entries <= most {
		return nil
	}
	return invalid(path, "%d entries, the limit is %d", entries, most)
}
