#pragma once

// The functions of OpenMP's library that are called here, from the OpenMP 5.0 specification (chapter 3). <omp.h>
// belongs to one compiler and its library; these are in GNU's library (libgomp), whichever compiler builds: Debian's
// oneDNN uses that one, and two such libraries in a program would start twice the threads. Loops need none of it: of
// OpenMP's directives they use `simd` alone (-fopenmp-simd).

extern "C" {

int omp_get_num_procs() noexcept;
int omp_get_thread_limit() noexcept;
void omp_set_num_threads(int count) noexcept;
int omp_get_dynamic() noexcept;
void omp_set_dynamic(int dynamic) noexcept;
/// 0 if threads are not bound to places.
int omp_get_proc_bind() noexcept;
int omp_get_num_places() noexcept;
/// -1 if this thread is bound to none.
int omp_get_place_num() noexcept;
int omp_get_place_num_procs(int place) noexcept;
/// `ids`: room for omp_get_place_num_procs(place).
void omp_get_place_proc_ids(int place, int* ids) noexcept;

// core/team/openmp_calls.cpp defines those that follow.

int omp_get_max_threads() noexcept;
int omp_get_thread_num() noexcept;
int omp_get_num_threads() noexcept;
int omp_in_parallel() noexcept;
void GOMP_barrier();
/// What GCC makes of a parallel region: region(data) in `threads` threads, or as many as omp_get_max_threads() says if
/// that is 0. The calling thread is one of them. Returns when all have.
void GOMP_parallel(void (*region)(void*), void* data, unsigned threads, unsigned flags);

}  // extern "C"
