package simulate

import "math"

// Report is the outcome of several policies on several lists of pods.
type Report struct {
	Nodes   int     `json:"nodes"`
	GPUs    int     `json:"gpus"`
	Inflate int     `json:"inflatePercent"`
	Seeds   []int64 `json:"seeds"`
	Lists   []List  `json:"lists"`
}

// List is the outcome on one list of pods.
type List struct {
	Name     string    `json:"name"`
	Pods     int       `json:"pods"` // before it is inflated or cut
	Policies []Outcome `json:"policies"`
}

// Outcome is the outcome of one policy on one list.
type Outcome struct {
	Policy string `json:"policy"`
	// Levels are the allocated GPU after requests for 100 % of the GPUs have arrived, if
	// as many arrive, and after all.
	Levels []Level `json:"levels"`
	// Curve is the mean over the seeds, by the percentage that has arrived.
	Curve []Point     `json:"curve"`
	Runs  []Placement `json:"runs"`
}

// Level is the allocated GPU, in percent of the cluster's, over the seeds. Sd is that of
// a sample, 0 for one seed.
type Level struct {
	Arrived int     `json:"arrivedPercent"`
	Mean    float64 `json:"meanPercent"`
	Sd      float64 `json:"sdPercent"`
	Min     float64 `json:"minPercent"`
	Max     float64 `json:"maxPercent"`
}

// Point is one point of a curve.
type Point struct {
	Arrived   int     `json:"arrivedPercent"`
	Allocated float64 `json:"allocatedPercent"`
}

// Placement is how many pods one run placed.
type Placement struct {
	Seed    int64 `json:"seed"`
	Arrived int   `json:"arrived"`
	Placed  int   `json:"placed"`
}

// Summarize makes the outcome of a policy of its runs, one for each seed.
func Summarize(policy string, inflate int, seeds []int64, runs []Run) Outcome {
	o := Outcome{Policy: policy}
	for i, r := range runs {
		o.Runs = append(o.Runs, Placement{Seed: seeds[i], Arrived: r.Arrived, Placed: r.Placed})
	}
	for percent := range inflate + 1 {
		o.Curve = append(o.Curve, Point{percent, levelAt(percent, runs).Mean})
	}
	if inflate > 100 {
		o.Levels = append(o.Levels, levelAt(100, runs))
	}
	o.Levels = append(o.Levels, levelAt(inflate, runs))
	return o
}

func levelAt(percent int, runs []Run) Level {
	l := Level{Arrived: percent, Min: math.Inf(1), Max: math.Inf(-1)}
	var sum, squares float64
	for i := range runs {
		v := runs[i].At(percent)
		sum += v
		l.Min, l.Max = min(l.Min, v), max(l.Max, v)
	}
	n := float64(len(runs))
	l.Mean = sum / n
	for i := range runs {
		d := runs[i].At(percent) - l.Mean
		squares += d * d
	}
	if len(runs) > 1 {
		l.Sd = math.Sqrt(squares / (n - 1))
	}
	l.Mean, l.Sd, l.Min, l.Max = rounded(l.Mean), rounded(l.Sd), rounded(l.Min), rounded(l.Max)
	return l
}

// rounded is a figure with three decimals, as it is shown.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }
