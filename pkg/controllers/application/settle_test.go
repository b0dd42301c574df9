// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A group that does not answer delays only the status of its own components.
func TestAGroupThatDoesNotAnswerHoldsBackItsOwnComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.workload, f.crd())
	kinds := components(configMaps, "settings")
	kinds["db"] = f.databaseKind()
	app := f.application("shop", kinds)
	settings := f.configMap("settings", "shop")
	f.status(f.database("db", "shop"), map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.installed(app, "db", "settings")
	f.says(app, "db", "True/Healthy ")
	f.answerFor("/apis/"+f.databaseKind().Group+"/v1", http.StatusInternalServerError, `"code":500,"reason":"InternalError"`)
	f.restart()
	f.Delete(f.workload, settings)
	f.health(app, appsv1alpha1.HealthMissing)
	f.says(app, "db", "True/Healthy ")
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := formatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "True Watched" {
			return fmt.Errorf("got %q", got)
		}
		if s.ComponentsInstalled != "1/2" {
			return errors.New("want the one to be gone, and the other one to be there")
		}
		return nil
	})
}
