package sysfs

import "slices"

// distances reads the square of node distances. The columns of a row follow
// the order of online nodes, not their numbers. A square with a hole cannot be
// reported, so one broken row leaves all distances unknown.
func (r *reader) distances(layout nodeLayout) [][]int {
	var columns []int // the columns of nodes that were kept
	for i, id := range layout.columns {
		if slices.Contains(layout.nodes, id) {
			columns = append(columns, i)
		}
	}
	square := make([][]int, 0, len(layout.nodes))
	for i, id := range layout.nodes {
		path := nodePath(id, "/distance")
		text, err := r.text(path)
		var row []int
		if err == nil {
			row, err = parseDistances(text, len(layout.columns))
		}
		if err != nil {
			r.warn(path, "%v; all distances are unknown", err)
			return nil
		}
		kept := make([]int, len(columns))
		for j, column := range columns {
			kept[j] = row[column]
		}
		if least := slices.Min(kept); kept[i] > least {
			r.warn(path, "node %d is %d from itself and %d from another", id, kept[i], least)
		}
		square = append(square, kept)
	}
	return square
}
