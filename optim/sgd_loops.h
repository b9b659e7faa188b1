// The loops of optim/sgd.cpp (see core/kernels/per_instruction_set.h).

void descend(const Step& step, float* __restrict w, const float* __restrict g, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) w[i] -= step.rate * (g[i] + step.decay * w[i]);
}

template <bool kNesterov>
void descend_with_momentum(const Step& step, float* __restrict w, float* __restrict v, const float* __restrict g,
                           std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float decayed = g[i] + step.decay * w[i];
    const float velocity = step.momentum * v[i] + decayed;
    v[i] = velocity;
    w[i] -= step.rate * (kNesterov ? decayed + step.momentum * velocity : velocity);
  }
}

void descend_heavy_ball(const Step& step, float* w, float* v, const float* g, std::int64_t n) {
  descend_with_momentum<false>(step, w, v, g, n);
}

void descend_nesterov(const Step& step, float* w, float* v, const float* g, std::int64_t n) {
  descend_with_momentum<true>(step, w, v, g, n);
}
