package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/spelling"
)

// UnknownError says that a path leads to no field, and names the nearest one.
type UnknownError struct {
	Path    string
	Nearest string // "" where nothing is near
	// Known are the names that could stand in place of the first unknown one.
	Known []string
}

// Error names the path to write instead.
func (e *UnknownError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("%q is no field of any kind, did you mean %s?", e.Path, e.Nearest)
	}
	return fmt.Sprintf("%q is no field of any kind: want one of %s", e.Path, strings.Join(e.Known, ", "))
}

// Find returns the kind and the field at a path such as job.spec.parallelism. The
// path of a kind alone leads to the document. Kinds are known by their name in any
// case, with or without a final s; fields by their exact names, and by other cases
// where that is not ambiguous.
func Find(path string) (*Kind, *Field, error) {
	names := strings.Split(path, ".")
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return isKind(k.Name, names[0]) })
	if i < 0 {
		unknown := &UnknownError{Path: path}
		for _, k := range kinds {
			unknown.Known = append(unknown.Known, strings.ToLower(k.Name))
		}
		unknown.Nearest = joined("", nearest(strings.ToLower(names[0]), unknown.Known), names[1:])
		return nil, nil, unknown
	}
	k := &kinds[i]
	field, walked := &k.Field, strings.ToLower(k.Name)
	for n, name := range names[1:] {
		next := child(field.Fields, name)
		if next == nil {
			unknown := &UnknownError{Path: path}
			for _, f := range field.Fields {
				unknown.Known = append(unknown.Known, f.Name)
			}
			unknown.Nearest = joined(walked, nearest(name, unknown.Known), names[n+2:])
			if len(unknown.Known) == 0 {
				unknown.Nearest = walked
			}
			return nil, nil, unknown
		}
		field, walked = next, walked+"."+next.Name
	}
	return k, field, nil
}

// isKind reports whether a word names a kind: Job, job, jobs.
func isKind(kind, word string) bool {
	return strings.EqualFold(kind, word) || strings.EqualFold(kind+"s", word) ||
		strings.HasSuffix(kind, "y") && strings.EqualFold(strings.TrimSuffix(kind, "y")+"ies", word)
}

func child(fields []Field, name string) *Field {
	exact := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if exact >= 0 {
		return &fields[exact]
	}
	folded := slices.IndexFunc(fields, func(f Field) bool { return strings.EqualFold(f.Name, name) })
	if folded >= 0 {
		return &fields[folded]
	}
	return nil
}

// joined is a corrected path: as far as it was known, the nearest name, and the
// rest where that then leads to a field.
func joined(walked, near string, rest []string) string {
	if near == "" {
		return ""
	}
	corrected := strings.TrimPrefix(walked+"."+near, ".")
	if len(rest) == 0 {
		return corrected
	}
	if longer := corrected + "." + strings.Join(rest, "."); leads(longer) {
		return longer
	}
	return corrected
}

func leads(path string) bool {
	_, _, err := Find(path)
	return err == nil
}

// nearest is the name with the fewest changes of letters, "" where that is more
// than a third of them.
func nearest(word string, names []string) string {
	known := make(map[string]string, len(names)) // by the name in lower case
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
		known[lower[i]] = name
	}
	return known[spelling.Nearest(strings.ToLower(word), lower, len(word)/3+1)]
}
