// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
)

// A group that does not answer delays only the status of its own components.
func TestAGroupThatDoesNotAnswerHoldsBackItsOwnComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.Workload, f.DatabaseCRD())
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["db"] = f.DatabaseKind()
	app := f.CreateApplication("shop", kinds)
	settings := f.CreateConfigMap("settings", "shop")
	f.SetStatus(f.database("db", "shop"), map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.WaitForInstalled(app, "db", "settings")
	f.WaitForComponent(app, "db", "True/Healthy ")
	f.AnswerFor("/apis/"+f.DatabaseKind().Group+"/v1", http.StatusInternalServerError, `"code":500,"reason":"InternalError"`)
	f.restart()
	f.Delete(f.Workload, settings)
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
	f.WaitForComponent(app, "db", "True/Healthy ")
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "True Watched" {
			return fmt.Errorf("got %q", got)
		}
		if s.ComponentsInstalled != "1/2" {
			return errors.New("want the one to be gone, and the other one to be there")
		}
		return nil
	})
}
