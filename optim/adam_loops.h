// The loop of optim/adam.cpp (see core/kernels/per_instruction_set.h).

void descend(const Step& step, float* __restrict w, float* __restrict m, float* __restrict v, const float* __restrict g,
             std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float decayed = g[i] + step.decay * w[i];
    const float first = step.beta1 * m[i] + step.one_minus_beta1 * decayed;
    const float second = step.beta2 * v[i] + step.one_minus_beta2 * decayed * decayed;
    m[i] = first;
    v[i] = second;
    w[i] -= step.corrected_rate * first / (__builtin_sqrtf(second) * step.root_correction + step.epsilon);
  }
}
