package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// compareNatural compares texts as people do: runs of digits by their value, so
// that node-2 comes before node-10. Texts that differ in leading zeros alone are
// ordered by the zeros.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx == 0 || dy == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		nx, ny := strings.TrimLeft(x[:dx], "0"), strings.TrimLeft(y[:dy], "0")
		if c := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny)); c != 0 {
			return c
		}
		x, y = x[dx:], y[dy:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// sortByName orders objects of one kind by namespace and name.
func sortByName(objects []object) {
	slices.SortStableFunc(objects, func(x, y object) int {
		m, n := x.meta(), y.meta()
		return cmp.Or(compareNatural(m.Namespace, n.Namespace), compareNatural(m.Name, n.Name))
	})
}

// sorted returns objects in the order of --sort-by, or as they are without it.
// An object without the field comes first.
func (a *app) sorted(objects []object) ([]object, error) {
	if a.sortBy.path == nil || len(objects) == 0 {
		return objects, nil
	}
	type keyed struct {
		object
		keys []any
	}
	all := make([]keyed, len(objects))
	found := false
	for i, o := range objects {
		keys, err := a.sortBy.path.find(o.document())
		if err != nil {
			return nil, fmt.Errorf("--sort-by %s: %w", a.sortBy.text, err)
		}
		all[i] = keyed{o, keys}
		found = found || len(keys) > 0
	}
	if !found {
		return nil, fmt.Errorf("--sort-by %s: no object that was found has this field", a.sortBy.text)
	}
	slices.SortStableFunc(all, func(x, y keyed) int { return slices.CompareFunc(x.keys, y.keys, compareValues) })
	for i, k := range all {
		objects[i] = k.object
	}
	return objects, nil
}

// compareValues compares values of documents: numbers and amounts by their size
// and before other texts, which are in natural order.
func compareValues(x, y any) int {
	a, b := fmt.Sprint(x), fmt.Sprint(y)
	m, isAmount := amountIn(a)
	n, areAmounts := amountIn(b)
	switch {
	case isAmount && areAmounts:
		return cmp.Or(cmp.Compare(m, n), compareNatural(a, b))
	case isAmount:
		return -1
	case areAmounts:
		return 1
	}
	return compareNatural(a, b)
}

// amountIn reads a number or a quantity in thousandths.
func amountIn(text string) (int64, bool) {
	rest, negative := strings.CutPrefix(text, "-")
	v, err := resource.ParseQuantity(rest, 1000)
	if negative {
		v = -v
	}
	return v, err == nil
}
