package sysfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// memory reads MemTotal; known is false, and a warning given, where the file
// does not tell.
func (r *reader) memory(path string) (total resource.Bytes, known bool) {
	text, err := r.text(path)
	if err == nil {
		total, err = parseMemTotal(text)
	}
	if err != nil {
		r.warn(path, "%v; the memory is unknown and shown as 0", err)
		return 0, false
	}
	return total, true
}

// maxPageSizes bounds the huge page sizes of one node; no port has over 9.
const maxPageSizes = 32

// hugepages reads the pages of each size in kB; nil where there are none.
func (r *reader) hugepages(dir string) map[int]int64 {
	names, err := r.names(dir)
	if err != nil {
		if !absent(err) {
			r.warn(dir, "%v; huge pages are unknown", err)
		}
		return nil
	}
	slices.Sort(names)
	pages := map[int]int64{}
	for _, name := range names {
		sizeText, ok := strings.CutPrefix(name, "hugepages-")
		if !ok {
			continue
		}
		path := dir + "/" + name
		size, err := strconv.ParseUint(strings.TrimSuffix(sizeText, "kB"), 10, 31)
		if err != nil || size == 0 || sizeText != strconv.FormatUint(size, 10)+"kB" {
			r.warn(path, "its name is not a page size in kB; ignored")
			continue
		}
		if len(pages) == maxPageSizes {
			r.warn(dir, "has more than %d page sizes; the rest is ignored", maxPageSizes)
			break
		}
		text, err := r.text(path + "/nr_hugepages")
		var count int64
		if err == nil {
			count, err = parseCount(text)
		}
		if err != nil {
			r.warn(path+"/nr_hugepages", "%v; the pages of this size are unknown and left out", err)
			continue
		}
		pages[int(size)] = count
	}
	if len(pages) == 0 {
		return nil
	}
	return pages
}

// distances reads the square of node distances. The columns of a row follow
// the order of online nodes, not their numbers. A square with a hole cannot be
// told, so one broken row leaves all distances unknown.
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
