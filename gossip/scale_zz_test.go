package gossip_test
import ("testing";"time";"sync";"fmt";"syscall";"runtime"
"github.com/musterd/muster/gossip")
func TestScaleZZ(t *testing.T){
 t0:=time.Now()
 var all []*gossip.Rings
 for i:=range 101 { var j []string; if i>0 { j=[]string{all[0].Serf.Addr()} }
  r,err:=gossip.Start(config(fmt.Sprintf("node-%d",i),j...)); if err!=nil{t.Fatal(err)}; all=append(all,r) }
 fmt.Println("started",time.Since(t0))
 for _,r:=range all { wait(t,"join",r.Joined()) }
 fmt.Println("joined",time.Since(t0))
 eventually(t,"all",func() bool { for _,r:=range all { if alive(r)!=101||r.Capacity.Members()!=101 {return false}}; return true})
 fmt.Println("converged",time.Since(t0))
 cpu:=func() time.Duration { var u syscall.Rusage; syscall.Getrusage(0,&u); return time.Duration(u.Utime.Nano()+u.Stime.Nano()) }
 fmt.Println("cpu so far", cpu())
 c0,s0:=cpu(),time.Now(); <-time.After(10*time.Second); fmt.Println("idle cpu/s", (cpu()-c0).Seconds()/time.Since(s0).Seconds())
 t1:=time.Now()
 for i,r:=range all { if err:=r.Capacity.Publish(free(fmt.Sprintf("node-%d",i),1,1,uint64(i))); err!=nil{t.Fatal(err)} }
 eventually(t,"digests",func() bool { for _,r:=range all { if len(r.Capacity.Digests())!=101 {return false}}; return true})
 fmt.Println("101 digests everywhere",time.Since(t1))
 t1=time.Now()
 all[50].Capacity.Publish(free("node-50",1,2,7))
 eventually(t,"one",func() bool { for _,r:=range all { if mask(r,"node-50")!=7 {return false}}; return true})
 fmt.Println("one digest everywhere",time.Since(t1))
 var m runtime.MemStats; runtime.ReadMemStats(&m); fmt.Println("heap MB",m.HeapAlloc>>20, "goroutines", runtime.NumGoroutine())
 t2:=time.Now(); var wg sync.WaitGroup
 for _,r:=range all { wg.Go(func(){ r.Close() }) }; wg.Wait()
 fmt.Println("closed",time.Since(t2))
}
