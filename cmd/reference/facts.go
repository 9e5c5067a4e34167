package reference

import "strings"

// facts are the facts of a field besides its meaning, as the pages and muster
// explain show them: pairs of a word and a value.
func (f Field) facts() [][2]string {
	var all [][2]string
	add := func(word, value string) {
		if value != "" {
			all = append(all, [2]string{word, value})
		}
	}
	add("Values", strings.Join(f.Values, ", "))
	add("Default", f.Default)
	add("Range", spelled(f.Range))
	add("Unit", f.Unit)
	add("Example", f.Example)
	return all
}

// spelled is a range in words where one end is open.
func spelled(r string) string {
	low, high, ok := strings.Cut(r, "..")
	switch {
	case ok && high == "" && low == "1ns":
		return "more than 0"
	case ok && high == "":
		return low + " or more"
	case ok && low == "":
		return high + " or less"
	}
	return r
}

// marks are the words beside a field's type.
func (f Field) marks() string {
	switch {
	case f.Refused:
		return "not supported"
	case f.Required:
		return "required"
	case f.ReadOnly:
		return "set by the server"
	case f.Recorded:
		return "recorded only"
	}
	return ""
}
