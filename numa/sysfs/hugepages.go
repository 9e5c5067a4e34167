package sysfs

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

const (
	globalHugepages = "sys/kernel/mm/hugepages"
	// maxPageSizes bounds the huge page sizes of one node, those without a page
	// included; no port has over 9.
	maxPageSizes = 16
)

// pool is the huge pages of one node by their size in kB, and the file or folder
// that counts them.
type pool struct {
	counts map[int]int64
	from   string
}

// hugepages reads the pages of each size in kB from a folder; nil where there
// are none. told is false where the folder is absent.
func (r *reader) hugepages(dir string) (pages map[int]int64, told bool) {
	names, err := r.names(dir)
	if err != nil {
		if !absent(err) {
			r.warn(dir, "%v; huge pages are unknown", err)
		}
		return nil, !absent(err)
	}
	slices.Sort(names)
	for _, name := range names {
		sizeText, ok := strings.CutPrefix(name, "hugepages-")
		if !ok {
			continue
		}
		path := dir + "/" + name
		size, err := strconv.ParseUint(strings.TrimSuffix(sizeText, "kB"), 10, 31)
		if err != nil || size == 0 || sizeText != strconv.FormatUint(size, 10)+"kB" || size > uint64(resource.MaxHugepageSize>>10) {
			r.warn(path, "its name is not a page size of 1..%d kB; ignored", resource.MaxHugepageSize>>10)
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
		if pages == nil {
			pages = map[int]int64{}
		}
		pages[int(size)] = count
	}
	return pages, true
}

// nodesHugepages reads the pages of each node: from the node's folder, or from
// the node's meminfo where there is none, which counts pages of the default size
// alone. A tree's only node has all of the host's pages; where there are several,
// pages that the host has and no node shows are warned about.
func (r *reader) nodesHugepages(nodes []int) map[int]pool {
	pages := make(map[int]pool, len(nodes))
	silent := 0
	for _, id := range nodes {
		from := nodePath(id, "/hugepages")
		counts, told := r.hugepages(from)
		if !told {
			silent++
			from = nodePath(id, "/meminfo")
			counts = r.hugepagesOfMeminfo(from)
		}
		pages[id] = pool{counts, from}
	}
	if silent < len(nodes) {
		// A node without memory has no such folder.
		return pages
	}
	global, told := r.hugepages(globalHugepages)
	switch {
	case !told:
	case len(nodes) == 1:
		maps.DeleteFunc(global, func(_ int, count int64) bool { return count == 0 })
		pages[nodes[0]] = pool{global, globalHugepages}
	default:
		r.checkGlobalPages(global, pages)
	}
	return pages
}

// checkGlobalPages warns about pages that the host counts and no node shows.
func (r *reader) checkGlobalPages(global map[int]int64, pages map[int]pool) {
	shown := map[int]int64{}
	for _, ofNode := range pages {
		for size, count := range ofNode.counts {
			shown[size] += min(count, math.MaxInt64-shown[size])
		}
	}
	for _, size := range slices.Sorted(maps.Keys(global)) {
		if hidden := global[size] - shown[size]; hidden > 0 {
			r.warn(globalHugepages, "counts %d huge pages of %d kB, and the nodes show %d of them; the others are not offered", global[size], size, shown[size])
		}
	}
}

// hugepagesOfMeminfo reads the pages of the default size from a meminfo; nil
// where there are none. Faults of the file itself are warned about by the callers that
// read its memory.
func (r *reader) hugepagesOfMeminfo(path string) map[int]int64 {
	text, err := r.text(path)
	if err != nil {
		return nil
	}
	count, err := parseHugePagesTotal(text)
	if err != nil {
		r.warn(path, "%v; huge pages are unknown", err)
		return nil
	}
	if count == 0 {
		return nil
	}
	host, err := r.text("proc/meminfo")
	var size int
	if err == nil {
		size, err = parseHugePageSize(host)
	}
	if err != nil {
		r.warn("proc/meminfo", "%v; the size of %d huge pages of %s is unknown, and they are not offered", err, count, path)
		return nil
	}
	return map[int]int64{size: count}
}
