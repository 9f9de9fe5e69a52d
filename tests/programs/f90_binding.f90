! Fortran calls for which Open MPI's binding calls another MPI function first, to learn the length of an array.
! The program does not make those calls; they are said with, and a recording may have them or not.
program f90_binding
  use mpi
  implicit none
  include 'oracle.inc'
  integer :: rank, size, ierr, total, sum, i, n, root, length, cart, request, s
  integer :: counts(16), back(16), row(16), sendcounts(16), recvcounts(16), sdispls(16), rdispls(16)
  integer :: out(200), in(200)
  logical :: openmpi
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  call MPI_Init(ierr)
  call say('MPI_Init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call say('MPI_Comm_rank comm=MPI_COMM_WORLD rank='//num(rank))
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call say('MPI_Comm_size comm=MPI_COMM_WORLD size='//num(size))
  call MPI_Get_library_version(version, length, ierr)
  call say('MPI_Get_library_version')
  openmpi = index(version, 'Open MPI') > 0
  n = size
  root = size - 1
  sum = 0
  out = [(1000*rank + i, i=1, 200)]
  in = 0
  counts(1:n) = [(i + 1, i=1, n)]
  back(1:n) = [(6*(n - i), i=1, n)]
  row(1:n) = [((i - 1)*(i + 2)/2, i=1, n)]

  call asks_size
  call MPI_Gatherv(out, rank + 2, MPI_INTEGER, in, counts, back, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  if (rank == root) then
     call say('MPI_Gatherv inplace=false sendcount='//num(rank + 2)//' sendtype=MPI_INTEGER recvcounts='// &
          trim(list(n, counts))//' displs='//trim(list(n, back))//' recvtype=MPI_INTEGER root='//num(root)// &
          ' comm=MPI_COMM_WORLD')
  else
     call say('MPI_Gatherv inplace=false sendcount='//num(rank + 2)//' sendtype=MPI_INTEGER recvcounts=[] displs=[] '// &
          'recvtype=null root='//num(root)//' comm=MPI_COMM_WORLD')
  end if
  call take
  call asks_size
  call MPI_Scatterv(out, counts, row, MPI_INTEGER, in, rank + 2, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
  if (rank == root) then
     call say('MPI_Scatterv sendcounts='//trim(list(n, counts))//' displs=[] sendtype=MPI_INTEGER inplace=false '// &
          'recvcount='//num(rank + 2)//' recvtype=MPI_INTEGER root='//num(root)//' comm=MPI_COMM_WORLD')
  else
     call say('MPI_Scatterv sendcounts=[] displs=[] sendtype=null inplace=false recvcount='//num(rank + 2)// &
          ' recvtype=MPI_INTEGER root='//num(root)//' comm=MPI_COMM_WORLD')
  end if
  call take
  call asks_size
  call MPI_Allgatherv(out, rank + 2, MPI_INTEGER, in, counts, row, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call say('MPI_Allgatherv inplace=false sendcount='//num(rank + 2)//' sendtype=MPI_INTEGER recvcounts='// &
       trim(list(n, counts))//' displs=[] recvtype=MPI_INTEGER comm=MPI_COMM_WORLD')
  call take
  ! a sends b 1 + (a + 2 b) mod 3 integers.
  sendcounts(1:n) = [(1 + mod(rank + 2*i, 3), i=0, n - 1)]
  recvcounts(1:n) = [(1 + mod(i + 2*rank, 3), i=0, n - 1)]
  sdispls(1:n) = [(7*i, i=0, n - 1)]
  rdispls(1:n) = [(5*i + 2, i=0, n - 1)]
  call asks_size
  call MPI_Alltoallv(out, sendcounts, sdispls, MPI_INTEGER, in, recvcounts, rdispls, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call say('MPI_Alltoallv inplace=false sendcounts='//trim(list(n, sendcounts))//' sdispls='//trim(list(n, sdispls))// &
       ' sendtype=MPI_INTEGER recvcounts='//trim(list(n, recvcounts))//' rdispls='//trim(list(n, rdispls))// &
       ' recvtype=MPI_INTEGER comm=MPI_COMM_WORLD')
  call take
  call asks_size
  call MPI_Reduce_scatter(out, in, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call say('MPI_Reduce_scatter inplace=false counts='//trim(list(n, counts))// &
       ' type=MPI_INTEGER op=MPI_SUM comm=MPI_COMM_WORLD')
  call take
  call asks_size
  call MPI_Reduce_scatter_block(out, in, 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call say('MPI_Reduce_scatter_block inplace=false count=3 type=MPI_INTEGER op=MPI_MAX comm=MPI_COMM_WORLD')
  call take
  call asks_size
  call MPI_Iallgatherv(out, rank + 2, MPI_INTEGER, in, counts, back, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
  s = slsend()
  call say('MPI_Iallgatherv inplace=false sendcount='//num(rank + 2)//' sendtype=MPI_INTEGER recvcounts='// &
       trim(list(n, counts))//' displs='//trim(list(n, back))//' recvtype=MPI_INTEGER comm=MPI_COMM_WORLD request='// &
       num(s))
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call say('MPI_Wait requests='//trim(slots(1, [s]))//' completed='//done(1, [1], [s], [0], [0]))
  call take

  call MPI_Cart_create(MPI_COMM_WORLD, 2, [n, 1], [.true., .false.], .false., cart, ierr)
  call say('MPI_Cart_create comm=MPI_COMM_WORLD ndims=2 dims='//trim(list(2, [n, 1]))// &
       ' periods=[true,false] reorder=0 newcomm=new:cart')
  if (openmpi) call say('MPI_Cartdim_get comm=cart ndims=2')
  call MPI_Cart_rank(cart, [rank + 1, 0], i, ierr)
  call say('MPI_Cart_rank comm=cart coords='//trim(list(2, [rank + 1, 0]))//' rank='//num(i))
  sum = sum + i
  call MPI_Comm_free(cart, ierr)
  call say('MPI_Comm_free freecomm=cart')

  call MPI_Reduce(sum, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  call say('MPI_Reduce inplace=false count=1 type=MPI_INTEGER op=MPI_SUM root=0 comm=MPI_COMM_WORLD')
  call MPI_Finalize(ierr)
  call say('MPI_Finalize')
  call orwrit(rank)
  if (rank == 0) print '(a,i0)', 'f90_binding: ok ', total

contains

  subroutine take
    sum = sum + dot_product(in, [(i, i=1, 200)])
    in = 0
  end subroutine take

  subroutine asks_size
    if (openmpi) call say('MPI_Comm_size comm=MPI_COMM_WORLD size='//num(size))
  end subroutine asks_size

end program f90_binding
