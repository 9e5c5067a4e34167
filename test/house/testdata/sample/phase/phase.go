package phase

type phase int

type job struct {
	phase phase
	tries int
}

func (j *job) start() { j.phase = 1; j.tries++ }
func (j *job) stop()  { j.phase = 2; j.phase = 3; j.tries = 0 }

func stopAll(jobs []*job) {
	for _, j := range jobs {
		j.phase = 2
	}
}
