// Keeps points of series, and answers what is asked of them, with the storage of Prometheus in this
// process.
//
//	series-rival FOLDER
//
// The lines that it reads and writes are those of series-rivals.py. A batch is one append of the
// next points of all series, in the order of their times: this storage refuses a point that is an
// hour older than the newest one of any series. Times are milliseconds here.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

const (
	module = "github.com/prometheus/prometheus"
	metric = "points"
	minute = time.Minute
)

// The storage, and what is known of its points.
type rival struct {
	folder string
	db     *tsdb.DB
	engine *promql.Engine
	// In milliseconds.
	first, last int64
}

// What was asked for; its time is taken without the sum.
type answer struct {
	Micros float64 `json:"micros"`
	Rows   [][]any `json:"rows"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: series-rival FOLDER")
		os.Exit(2)
	}
	options := promql.EngineOpts{MaxSamples: math.MaxInt, Timeout: time.Hour}
	r := &rival{folder: filepath.Join(os.Args[1], "tsdb"), engine: promql.NewEngine(options)}
	fmt.Println("prometheus", version())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		found, err := r.answer(strings.Fields(lines.Text()))
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "prometheus:", err)
			os.Exit(1)
		}
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "of an unknown version"
}

func (r *rival) answer(words []string) (answer, error) {
	switch {
	case len(words) == 4 && words[0] == "load":
		series, err := strconv.Atoi(words[2])
		if err != nil {
			return answer{}, err
		}
		batch, err := strconv.Atoi(words[3])
		if err != nil {
			return answer{}, err
		}
		return r.load(words[1], series, batch)
	case len(words) == 1 && words[0] == "compact":
		return r.compact()
	case len(words) == 2 && words[0] == "range":
		return r.readRange(words[1])
	case len(words) == 1 && words[0] == "means":
		return r.means()
	}
	return answer{}, fmt.Errorf("%q is no question", words)
}

func micros(begin time.Time) float64 {
	return float64(time.Since(begin).Nanoseconds()) / 1e3
}

func (r *rival) load(file string, series, batch int) (answer, error) {
	times, values, err := points(file)
	if err != nil {
		return answer{}, err
	}
	if r.db != nil {
		if err := r.db.Close(); err != nil {
			return answer{}, err
		}
	}
	if err := os.RemoveAll(r.folder); err != nil {
		return answer{}, err
	}
	options := tsdb.DefaultOptions()
	// As the server has them: blocks grow together, and nothing is too old.
	options.RetentionDuration, options.MaxBlockDuration = 0, (31 * 24 * time.Hour).Milliseconds()
	if r.db, err = tsdb.Open(r.folder, nil, nil, options, nil); err != nil {
		return answer{}, err
	}
	names := make([]labels.Labels, series)
	for at := range names {
		names[at] = labels.FromStrings(labels.MetricName, metric, "series", strconv.Itoa(at))
	}
	references := make([]storage.SeriesRef, series)
	begin := time.Now()
	for start := 0; start < len(times); start += batch {
		appender := r.db.Appender(context.Background())
		for at := start; at < min(start+batch, len(times)); at++ {
			for one := range names {
				reference, err := appender.Append(references[one], names[one], times[at], values[at])
				if err != nil {
					return answer{}, err
				}
				references[one] = reference
			}
		}
		if err := appender.Commit(); err != nil {
			return answer{}, err
		}
	}
	taken := micros(begin)
	r.first, r.last = times[0], times[len(times)-1]
	return answer{taken, [][]any{{len(times) * series}}}, nil
}

// All times (microseconds) and then all values of a file, little-endian.
func points(file string) ([]int64, []float64, error) {
	bytes, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	count := len(bytes) / 16
	if count == 0 {
		return nil, nil, fmt.Errorf("%s has no points", file)
	}
	times, values := make([]int64, count), make([]float64, count)
	for at := range count {
		times[at] = int64(binary.LittleEndian.Uint64(bytes[8*at:])) / 1000
		values[at] = math.Float64frombits(binary.LittleEndian.Uint64(bytes[8*(count+at):]))
	}
	return times, values, nil
}

func (r *rival) compact() (answer, error) {
	begin := time.Now()
	if err := r.db.Compact(context.Background()); err != nil {
		return answer{}, err
	}
	head := r.db.Head()
	if head.NumSeries() > 0 && head.MinTime() <= head.MaxTime() {
		rest := tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())
		if err := r.db.CompactHead(rest); err != nil {
			return answer{}, err
		}
		if err := r.db.Compact(context.Background()); err != nil {
			return answer{}, err
		}
	}
	var size int64
	for _, block := range r.db.Blocks() {
		size += block.Size()
	}
	return answer{micros(begin), [][]any{{size}}}, nil
}

func (r *rival) readRange(series string) (answer, error) {
	begin := time.Now()
	querier, err := r.db.Querier(r.first, r.last)
	if err != nil {
		return answer{}, err
	}
	defer querier.Close()
	var times []int64
	var values []float64
	matchers := []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, metric),
		labels.MustNewMatcher(labels.MatchEqual, "series", series),
	}
	found := querier.Select(context.Background(), false, nil, matchers...)
	var iterator chunkenc.Iterator
	for found.Next() {
		iterator = found.At().Iterator(iterator)
		for iterator.Next() == chunkenc.ValFloat {
			at, value := iterator.At()
			times, values = append(times, at), append(values, value)
		}
		if err := iterator.Err(); err != nil {
			return answer{}, err
		}
	}
	if err := found.Err(); err != nil {
		return answer{}, err
	}
	taken := micros(begin)
	if len(times) != len(values) {
		return answer{}, fmt.Errorf("%d times of %d values", len(times), len(values))
	}
	return answer{taken, [][]any{{len(values), sum(values)}}}, nil
}

// The mean of a minute is that of the points up to its last millisecond.
func (r *rival) means() (answer, error) {
	begin := time.Now()
	end := func(milliseconds int64) time.Time {
		start := milliseconds - milliseconds%minute.Milliseconds()
		return time.UnixMilli(start + minute.Milliseconds() - 1)
	}
	query, err := r.engine.NewRangeQuery(context.Background(), r.db, nil,
		"avg_over_time("+metric+"[1m])", end(r.first), end(r.last), minute)
	if err != nil {
		return answer{}, err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return answer{}, result.Err
	}
	matrix, err := result.Matrix()
	if err != nil {
		return answer{}, err
	}
	taken := micros(begin)
	count, all := 0, 0.0
	for _, series := range matrix {
		count += len(series.Floats)
		for _, point := range series.Floats {
			all += point.F
		}
	}
	return answer{taken, [][]any{{count, all}}}, nil
}

func sum(values []float64) float64 {
	all := 0.0
	for _, value := range values {
		all += value
	}
	return all
}
