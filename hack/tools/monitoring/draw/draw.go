// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
)

// The size of a picture, at the 96 dots per inch of the format.
const width, height = 9 * vg.Inch, 3 * vg.Inch

// draw draws lines over the time of day, in UTC.
func draw(path, title, unit string, over v1.Range, lines []line) error {
	p := plot.New()
	p.Title.Text = title
	p.Y.Label.Text = unit
	p.Y.Min = 0
	p.X.Tick.Marker = plot.TimeTicks{Format: "15:04", Time: func(t float64) time.Time { return time.Unix(int64(t), 0).UTC() }}
	p.X.Label.Text = "UTC"
	p.Legend.Top, p.Legend.XOffs = true, -vg.Points(4)
	p.Add(plotter.NewGrid())
	for i, l := range lines {
		for part, xys := range l.parts() {
			drawn, points, err := plotter.NewLinePoints(xys)
			if err != nil {
				return err
			}
			if len(xys) == 1 {
				points.Color, points.Radius, points.Shape = plotutil.Color(i), vg.Points(1.5), vgdraw.CircleGlyph{}
				p.Add(points)
			}
			drawn.Color, drawn.Dashes = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.DefaultColors))
			drawn.Width = vg.Points(1.2)
			p.Add(drawn)
			if part == 0 {
				p.Legend.Add(l.name, drawn)
			}
		}
	}
	p.X.Min, p.X.Max = float64(over.Start.Unix()), float64(over.End.Unix())
	// Space for the legend, which would cover the lines otherwise.
	p.X.Max += (p.X.Max - p.X.Min) / 6
	p.Y.Max *= 1.05
	return p.Save(width, height, path)
}

// parts are the points of a line from one gap to the next.
func (l line) parts() []plotter.XYs {
	var all []plotter.XYs
	last := math.Inf(-1)
	for _, s := range l.samples {
		if math.IsNaN(float64(s.Value)) {
			continue
		}
		x := float64(s.Timestamp) / 1000
		if x-last > 1.5*l.step.Seconds() {
			all = append(all, nil)
		}
		last = x
		all[len(all)-1] = append(all[len(all)-1], plotter.XY{X: x, Y: float64(s.Value)})
	}
	return all
}
