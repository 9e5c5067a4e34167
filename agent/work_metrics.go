package agent

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// workGauges shows the measured use of the members on this host, until their record is
// terminal: for each member that of the last start.
type workGauges struct {
	agent                      *Agent
	cpu, memory, peak, kills   *prometheus.Desc
	busy, deviceUsed, devicePk *prometheus.Desc
}

func newWorkGauges(a *Agent, labels prometheus.Labels) *workGauges {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"work", "member"}, more...), labels)
	}
	return &workGauges{
		agent:      a,
		cpu:        desc("muster_agent_work_cpu_seconds_total", "Time of processors of a member of a job with a command, since its start."),
		memory:     desc("muster_agent_work_memory_bytes", "Memory in use of a member at the last sample."),
		peak:       desc("muster_agent_work_peak_memory_bytes", "The most memory in use of a member since its start."),
		kills:      desc("muster_agent_work_oom_kills_total", "Processes of a member that the kernel has killed for lack of memory; absent where the member has no cgroup."),
		busy:       desc("muster_agent_work_device_busy_seconds_total", "Time during which a device or MIG instance computed for a member: the sum of the busy part times time.", "uuid"),
		deviceUsed: desc("muster_agent_work_device_memory_bytes", "Memory of a device or MIG instance in use of a member at the last sample.", "uuid"),
		devicePk:   desc("muster_agent_work_device_peak_memory_bytes", "The most memory of a device or MIG instance in use of a member since its start.", "uuid"),
	}
}

// Describe implements prometheus.Collector.
func (g *workGauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.cpu, g.memory, g.peak, g.kills, g.busy, g.deviceUsed, g.devicePk} {
		c <- d
	}
}

// Collect implements prometheus.Collector. An agent that is too busy to answer in time
// has no gauges.
func (g *workGauges) Collect(c chan<- prometheus.Metric) {
	if g.agent.runner == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	view, err := g.agent.view(ctx, nil)
	if err != nil {
		return
	}
	show := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for m, use := range lastStarts(view, g.agent.runner.States) {
		labels := []string{string(m.unit), strconv.Itoa(m.index)}
		show(g.cpu, prometheus.CounterValue, use.CPU.Seconds(), labels...)
		show(g.memory, prometheus.GaugeValue, float64(use.Memory), labels...)
		show(g.peak, prometheus.GaugeValue, float64(use.PeakMemory), labels...)
		if use.OOMKills != grant.UnknownKills {
			show(g.kills, prometheus.CounterValue, float64(use.OOMKills), labels...)
		}
		for _, d := range use.Devices {
			of := append(labels[:2:2], d.UUID)
			show(g.busy, prometheus.CounterValue, d.Busy.Seconds(), of...)
			show(g.deviceUsed, prometheus.GaugeValue, float64(d.Memory), of...)
			show(g.devicePk, prometheus.GaugeValue, float64(d.PeakMemory), of...)
		}
	}
}

// memberOf names a member of a unit.
type memberOf struct {
	unit  resource.UnitUID
	index int
}

// lastStarts is the use of the last measured start of each member. A member has several
// starts where its command was restarted, and where an earlier grant of the same unit is
// still ending on this host; two series of one name would fail the whole scrape.
func lastStarts(v *ledger.View, statesOf func(resource.TxID) []grant.WorkState) map[memberOf]*grant.WorkUse {
	grants := slices.Clone(v.Grants)
	slices.SortStableFunc(grants, func(a, b ledger.Grant) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Tx, b.Tx)) })
	last := map[memberOf]*grant.WorkUse{}
	for _, g := range grants {
		for _, s := range statesOf(g.Tx) { // ascending by restart
			if s.Use != nil {
				last[memberOf{g.Unit, s.Member}] = s.Use
			}
		}
	}
	return last
}
