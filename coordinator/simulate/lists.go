package simulate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// The bounds of the lists.
const (
	MaxNodes = 100_000
	MaxPods  = 1_000_000

	maxCPUs   = 1024    // of one node
	maxMemory = 1 << 30 // of one node or pod, in MiB
	maxField  = 1 << 10 // bytes
	maxModels = 64      // of one pod
)

// Node is one row of a list of nodes.
type Node struct {
	Name   string
	CPU    resource.Millicores // whole CPUs
	Memory resource.Bytes
	GPUs   int
	Model  string
}

// Pod is one row of a list of pods.
type Pod struct {
	Name   string
	CPU    resource.Millicores
	Memory resource.Bytes
	GPUs   int            // whole devices
	Share  resource.Milli // of one device
	Models []string       // that the pod may run on; none: any
}

// gpu is the part of devices that the pod takes.
func (p *Pod) gpu() int64 { return int64(p.GPUs)*int64(resource.WholeDevice) + int64(p.Share) }

// ReadNodes reads a list of nodes: columns sn, cpu_milli, memory_mib, gpu, model.
func ReadNodes(r io.Reader) ([]Node, error) {
	var nodes []Node
	seen := map[string]bool{}
	err := readRows(r, MaxNodes, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(c *row) {
		n := Node{
			Name: c.text("sn"), CPU: resource.Millicores(c.number("cpu_milli", maxCPUs*1000)), Memory: resource.Bytes(c.number("memory_mib", maxMemory)) << 20,
			GPUs: int(c.number("gpu", fit.MaxGPUs)), Model: c.text("model"),
		}
		switch {
		case n.Name == "":
			c.fail("sn", "is empty")
		case seen[n.Name]:
			c.fail("sn", fmt.Sprintf("%q: a node before has that name", n.Name))
		case n.CPU%resource.WholeCPU != 0:
			c.fail("cpu_milli", fmt.Sprintf("%d is no whole number of CPUs, 1000 each", n.CPU))
		case n.GPUs > 0 && n.Model == "":
			c.fail("model", fmt.Sprintf("is empty, and the node has %d GPUs", n.GPUs))
		}
		seen[n.Name] = true
		nodes = append(nodes, n)
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("the list has no nodes")
	}
	if err != nil {
		return nil, err
	}
	return nodes, nil
}

// ReadPods reads a list of pods: columns name, cpu_milli, memory_mib, num_gpu,
// gpu_milli and, where the list has it, gpu_spec. Further columns are not looked at.
func ReadPods(r io.Reader) ([]Pod, error) {
	var pods []Pod
	err := readRows(r, MaxPods, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(c *row) {
		p := Pod{
			Name: c.text("name"), CPU: resource.Millicores(c.number("cpu_milli", maxCPUs*1000)),
			Memory: resource.Bytes(c.number("memory_mib", maxMemory)) << 20,
		}
		devices, milli := c.number("num_gpu", fit.MaxGPUs), c.number("gpu_milli", int64(resource.WholeDevice))
		switch {
		case devices > 0 && milli == 0:
			c.fail("gpu_milli", fmt.Sprintf("0 of %d GPUs: want 1 to 1000", devices))
		case devices > 1 && milli != int64(resource.WholeDevice):
			c.fail("gpu_milli", fmt.Sprintf("%d of each of %d GPUs: a share is of one GPU", milli, devices))
		case devices == 1 && milli < int64(resource.WholeDevice):
			p.Share = resource.Milli(milli)
		default:
			p.GPUs = int(devices)
		}
		if spec := c.text("gpu_spec"); spec != "" && devices > 0 {
			p.Models = strings.Split(spec, "|")
			slices.Sort(p.Models)
			if p.Models = slices.Compact(p.Models); p.Models[0] == "" || len(p.Models) > maxModels {
				c.fail("gpu_spec", fmt.Sprintf("%q: want 1 to %d models, separated by |", spec, maxModels))
			}
		}
		pods = append(pods, p)
	})
	if err == nil && len(pods) == 0 {
		err = errors.New("the list has no pods")
	}
	if err != nil {
		return nil, err
	}
	return pods, nil
}

// row is one row of a list; the first fault stays.
type row struct {
	at     map[string]int // columns by name
	fields []string
	fault  error
}

func (c *row) fail(column, what string) {
	if c.fault == nil {
		c.fault = fmt.Errorf("%s: %s", column, what)
	}
}

// text is the value of a column, "" where the list has no such column.
func (c *row) text(column string) string {
	i, found := c.at[column]
	if !found || i >= len(c.fields) {
		return ""
	}
	if v := c.fields[i]; len(v) <= maxField {
		return v
	}
	c.fail(column, fmt.Sprintf("%d bytes, more than %d", len(c.fields[i]), maxField))
	return ""
}

// number is the value of a column, which is in 0 to most.
func (c *row) number(column string, most int64) int64 {
	text := c.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		c.fail(column, fmt.Sprintf("%q: want a number from 0 to %d", text, most))
		return 0
	}
	return n
}

// readRows calls take with each row below a head that has the columns.
func readRows(r io.Reader, most int, columns []string, take func(*row)) error {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	head, err := lines.Read()
	if err == io.EOF {
		return fmt.Errorf("the list is empty; its first line has to be %s", strings.Join(columns, ","))
	}
	if err != nil {
		return err
	}
	c := &row{at: map[string]int{}}
	for i, name := range head {
		c.at[strings.TrimPrefix(strings.TrimSpace(name), "\ufeff")] = i
	}
	for _, name := range columns {
		if _, found := c.at[name]; !found {
			return fmt.Errorf("line 1: column %s is missing; want %s", name, strings.Join(columns, ","))
		}
	}
	for count := 0; ; count++ {
		c.fields, err = lines.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := lines.FieldPos(0)
		if count == most {
			return fmt.Errorf("line %d: more than %d rows", line, most)
		}
		if take(c); c.fault != nil {
			return fmt.Errorf("line %d: %w", line, c.fault)
		}
	}
}
