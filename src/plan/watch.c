#include "plan/watch.h"

#include "base/log.h"

bool tor_watch_begin(TorWatch *w, const TorContext *c, TorTraceMark *mark, int threads, void *token,
                     bool ranges) {
    const TorPlan *plan = tor_context_plan(c);
    *w = (TorWatch){.plan = plan,
                    .mark = tor_trace_begin(mark, c) ? mark : NULL,
                    .token = token,
                    .threads = threads,
                    .log = tor_log_level() >= 3,
                    .ranges = ranges && plan->ranges};
    return w->mark || w->log || w->ranges;
}

void tor_watch_step(TorWatch *w, uint32_t step) {
    if (w->ranges) {
        char name[160] = "toroid::";
        size_t prefix = sizeof "toroid::" - 1;
        TorText work = tor_text_fixed(name + prefix, sizeof name - prefix);
        tor_step_put_work(&work, &w->plan->steps[step]);
        w->plan->ranges(w->plan->ranges_user, w->token, name);
    }
    w->start = tor_now();
}

void tor_watch_ended(const TorWatch *w, uint32_t step) {
    double end = tor_now();
    if (w->ranges) w->plan->ranges(w->plan->ranges_user, w->token, NULL);
    if (w->mark) tor_trace_add(w->mark, step, w->threads, w->start, end);
    if (w->log) {
        const TorStep *s = &w->plan->steps[step];
        tor_log(3, "step %4u  %10.1f us  %-10s %s", step, (end - w->start) * 1e6, s->kind->name,
                s->node->origin ? s->node->origin : tor_op_name(s->node->op));
    }
}
