! Fortran 90 with the module mpi: what Fortran does its own way, and rows that f77_mix leaves out.
program f90_mix
  use mpi
  implicit none
  include 'oracle.inc'
  integer :: rank, size, right, left, ierr, provided, total, sum, i
  integer :: out(100), in(100)
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided, ierr)
  call say('MPI_Init_thread required=2 provided='//num(provided))
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call say('MPI_Comm_rank comm=MPI_COMM_WORLD rank='//num(rank))
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call say('MPI_Comm_size comm=MPI_COMM_WORLD size='//num(size))
  right = modulo(rank + 1, size)
  left = modulo(rank - 1, size)
  sum = 0
  out = [(1000*rank + i, i=1, 100)]
  in = 0

  call messages
  call persistent
  call matched
  call collective
  call nonblocking
  call types
  call topology

  call MPI_Reduce(sum, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  call say('MPI_Reduce inplace=false count=1 type=MPI_INTEGER op=MPI_SUM root=0 comm=MPI_COMM_WORLD')
  call MPI_Finalize(ierr)
  call say('MPI_Finalize')
  call orwrit(rank)
  if (rank == 0) print '(a,i0)', 'f90_mix: ok ', total

contains

  subroutine take
    sum = sum + dot_product(in, [(i, i=1, 100)])
    in = 0
  end subroutine take

  ! Predefined types that only Fortran has.
  subroutine messages
    logical :: l(6), m(6)
    character(len=9) :: c, d
    complex :: z(7), w(7)
    double complex :: zz(8), ww(8)
    integer :: status(MPI_STATUS_SIZE), request, s, n
    integer, parameter :: first(1) = [1]
    l = [(mod(i + rank, 3) == 0, i=1, 6)]
    call MPI_Sendrecv(l, 5, MPI_LOGICAL, right, 11, m, 6, MPI_LOGICAL, left, 11, MPI_COMM_WORLD, status, ierr)
    call say('MPI_Sendrecv sendcount=5 sendtype=MPI_LOGICAL dest='//num(right)//' sendtag=11 recvcount=6 '// &
         'recvtype=MPI_LOGICAL source='//num(left)//' recvtag=11 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=20')
    sum = sum + count(m(1:5))
    c = 'abcdefghi'
    call MPI_Irecv(d, 9, MPI_CHARACTER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, request, ierr)
    s = slrecv(8)
    call say('MPI_Irecv count=9 type=MPI_CHARACTER source=MPI_ANY_SOURCE tag=MPI_ANY_TAG comm=MPI_COMM_WORLD '// &
         'request='//num(s))
    call MPI_Send(c, 8, MPI_CHARACTER, right, 12, MPI_COMM_WORLD, ierr)
    call say('MPI_Send count=8 type=MPI_CHARACTER dest='//trim(num(right))//' tag=12 comm=MPI_COMM_WORLD')
    call MPI_Wait(request, status, ierr)
    call say('MPI_Wait requests='//trim(slots(1, [s]))//' completed='// &
         done(1, first, [s], [status(MPI_SOURCE)], [status(MPI_TAG)]))
    sum = sum + iachar(d(8:8))
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call say('MPI_Barrier comm=MPI_COMM_WORLD')
    z = (1.5, 2.5)*(rank + 1)
    call MPI_Sendrecv(z, 6, MPI_COMPLEX, right, 13, w, 7, MPI_COMPLEX, left, 13, MPI_COMM_WORLD, status, ierr)
    call say('MPI_Sendrecv sendcount=6 sendtype=MPI_COMPLEX dest='//num(right)//' sendtag=13 recvcount=7 '// &
         'recvtype=MPI_COMPLEX source='//num(left)//' recvtag=13 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=48')
    sum = sum + int(2*aimag(w(6)))
    zz = (0.5d0, 1.5d0)*(rank + 2)
    call MPI_Sendrecv(zz, 7, MPI_DOUBLE_COMPLEX, right, 14, ww, 8, MPI_DOUBLE_COMPLEX, left, 14, MPI_COMM_WORLD, &
         status, ierr)
    call say('MPI_Sendrecv sendcount=7 sendtype=MPI_DOUBLE_COMPLEX dest='//num(right)//' sendtag=14 recvcount=8 '// &
         'recvtype=MPI_DOUBLE_COMPLEX source='//num(left)//' recvtag=14 comm=MPI_COMM_WORLD rsource=null rtag=null '// &
         'bytes=112')
    sum = sum + int(2*aimag(ww(7)))
    call MPI_Get_count(status, MPI_DOUBLE_COMPLEX, n, ierr)
    call say('MPI_Get_count type=MPI_DOUBLE_COMPLEX count='//num(n))
    sum = sum + n
    ! Every second integer: the compiler passes a copy.
    call MPI_Send(out(1:19:2), 10, MPI_INTEGER, MPI_PROC_NULL, 15, MPI_COMM_WORLD, ierr)
    call say('MPI_Send count=10 type=MPI_INTEGER dest=MPI_PROC_NULL tag=15 comm=MPI_COMM_WORLD')
  end subroutine messages

  subroutine persistent
    integer :: q(2), s(2), status(MPI_STATUS_SIZE, 2), turn, n, where(2), fails, at
    logical :: flag
    call MPI_Recv_init(in, 9, MPI_INTEGER, left, 21, MPI_COMM_WORLD, q(1), ierr)
    s(1) = slrini(32)
    call say('MPI_Recv_init count=9 type=MPI_INTEGER source='//num(left)//' tag=21 comm=MPI_COMM_WORLD request='// &
         num(s(1)))
    call MPI_Ssend_init(out, 8, MPI_INTEGER, right, 21, MPI_COMM_WORLD, q(2), ierr)
    s(2) = slsini()
    call say('MPI_Ssend_init count=8 type=MPI_INTEGER dest='//num(right)//' tag=21 comm=MPI_COMM_WORLD request='// &
         num(s(2)))
    do turn = 1, 3
       call MPI_Startall(2, q, ierr)
       call say('MPI_Startall n=2 requests='//slots(2, s))
       select case (turn)
       case (1)
          fails = -1
          do
             call MPI_Testall(2, q, flag, status, ierr)
             fails = fails + 1
             if (flag) exit
          end do
          if (fails > 0) call say('MPI_Testall n=2 requests='//trim(slots(2, s))//' flag=false completed=[] times='// &
               num(fails))
          call say('MPI_Testall n=2 requests='//trim(slots(2, s))//' flag=true completed='// &
               trim(done(2, [1, 2], s, status(MPI_SOURCE, :), status(MPI_TAG, :)))//' times=1')
       case (2)
          at = 0
          do while (at < 2)
             fails = -1
             do
                call MPI_Testsome(2, q, n, where, status, ierr)
                fails = fails + 1
                if (n > 0) exit
             end do
             if (fails > 0) call say('MPI_Testsome n=2 requests='//trim(slots(2, s))//' completed=[] times='//num(fails))
             call say('MPI_Testsome n=2 requests='//trim(slots(2, s))//' completed='// &
                  trim(done(n, where, s, status(MPI_SOURCE, :), status(MPI_TAG, :)))//' times=1')
             at = at + n
          end do
       case (3)
          do n = 1, 2
             fails = -1
             do
                call MPI_Testany(2, q, at, flag, status(:, 1), ierr)
                fails = fails + 1
                if (flag) exit
             end do
             if (fails > 0) call say('MPI_Testany n=2 requests='//trim(slots(2, s))// &
                  ' flag=false completed=[] times='//num(fails))
             call say('MPI_Testany n=2 requests='//trim(slots(2, s))//' flag=true completed='// &
                  trim(done(1, [at], s, status(MPI_SOURCE, 1:1), status(MPI_TAG, 1:1)))//' times=1')
          end do
       end select
       call take
    end do
    call MPI_Request_free(q(1), ierr)
    call say('MPI_Request_free request='//num(s(1)))
    call slfree(s(1))
    call MPI_Request_free(q(2), ierr)
    call say('MPI_Request_free request='//num(s(2)))
    call slfree(s(2))
  end subroutine persistent

  subroutine matched
    integer :: message, s, status(MPI_STATUS_SIZE)
    call MPI_Send(out, 4, MPI_INTEGER, right, 31, MPI_COMM_WORLD, ierr)
    call say('MPI_Send count=4 type=MPI_INTEGER dest='//num(right)//' tag=31 comm=MPI_COMM_WORLD')
    call MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, message, status, ierr)
    s = slsend()
    call say('MPI_Mprobe source='//num(left)//' tag=MPI_ANY_TAG comm=MPI_COMM_WORLD request='//num(s)//' rsource='// &
         num(status(MPI_SOURCE))//' rtag='//num(status(MPI_TAG))//' bytes=16')
    call MPI_Mrecv(in, 5, MPI_INTEGER, message, status, ierr)
    call say('MPI_Mrecv count=5 type=MPI_INTEGER request='//num(s)//' rsource=null rtag=null bytes=16')
    call slfree(s)
    call take
  end subroutine matched

  subroutine collective
    double precision :: x(2, 2), y(2)
    integer :: root
    root = size - 1
    call MPI_Scatter(out, 3, MPI_INTEGER, in, 3, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
    if (rank == root) then
       call say('MPI_Scatter sendcount=3 sendtype=MPI_INTEGER inplace=false recvcount=3 recvtype=MPI_INTEGER root='// &
            num(root)//' comm=MPI_COMM_WORLD')
    else
       call say('MPI_Scatter sendcount=0 sendtype=null inplace=false recvcount=3 recvtype=MPI_INTEGER root='// &
            num(root)//' comm=MPI_COMM_WORLD')
    end if
    call take
    if (rank == root) then
       in(1:4) = out(1:4)
       call MPI_Reduce(MPI_IN_PLACE, in, 4, MPI_INTEGER, MPI_BXOR, root, MPI_COMM_WORLD, ierr)
       call say('MPI_Reduce inplace=true count=4 type=MPI_INTEGER op=MPI_BXOR root='//num(root)//' comm=MPI_COMM_WORLD')
       call take
    else
       call MPI_Reduce(out, in, 4, MPI_INTEGER, MPI_BXOR, root, MPI_COMM_WORLD, ierr)
       call say('MPI_Reduce inplace=false count=4 type=MPI_INTEGER op=MPI_BXOR root='//num(root)//' comm=MPI_COMM_WORLD')
    end if
    ! Pairs of a value and a place, as Fortran has them.
    x(:, 1) = [dble(modulo(rank + 1, size)), dble(rank)]
    call MPI_Allreduce(x, y, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call say('MPI_Allreduce inplace=false count=1 type=MPI_2DOUBLE_PRECISION op=MPI_MAXLOC comm=MPI_COMM_WORLD')
    sum = sum + int(y(2))
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call say('MPI_Allgather inplace=true sendcount=0 sendtype=null recvcount=5 recvtype=MPI_INTEGER comm=MPI_COMM_WORLD')
    call MPI_Exscan(out, in, 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call say('MPI_Exscan inplace=false count=6 type=MPI_INTEGER op=MPI_SUM comm=MPI_COMM_WORLD')
    if (rank == 0) in = 0
    call take
  end subroutine collective

  subroutine nonblocking
    integer :: q(2), s(2), status(MPI_STATUS_SIZE, 2), dup
    integer, asynchronous :: a(4), b(4)
    a = [rank, 1, 2, 3]
    b = 0
    call MPI_Iallreduce(a, b, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, q(1), ierr)
    s(1) = slsend()
    call say('MPI_Iallreduce inplace=false count=4 type=MPI_INTEGER op=MPI_SUM comm=MPI_COMM_WORLD request='//num(s(1)))
    call MPI_Ibarrier(MPI_COMM_WORLD, q(2), ierr)
    s(2) = slsend()
    call say('MPI_Ibarrier comm=MPI_COMM_WORLD request='//num(s(2)))
    call MPI_Waitall(2, q, MPI_STATUSES_IGNORE, ierr)
    call say('MPI_Waitall n=2 requests='//trim(slots(2, s))//' completed='//done(2, [1, 2], s, [0, 0], [0, 0]))
    sum = sum + b(1) + b(4)
    call MPI_Comm_idup(MPI_COMM_WORLD, dup, q(1), ierr)
    s(1) = slsend()
    call say('MPI_Comm_idup comm=MPI_COMM_WORLD newcomm=new:dup request='//num(s(1)))
    call MPI_Wait(q(1), status(:, 1), ierr)
    call say('MPI_Wait requests='//trim(slots(1, s))//' completed='//done(1, [1], s, [0], [0]))
    call MPI_Ibcast(in, 7, MPI_INTEGER, size - 1, dup, q(1), ierr)
    s(1) = slsend()
    call say('MPI_Ibcast count=7 type=MPI_INTEGER root='//num(size - 1)//' comm=dup request='//num(s(1)))
    call MPI_Wait(q(1), status(:, 1), ierr)
    call say('MPI_Wait requests='//trim(slots(1, s))//' completed='//done(1, [1], s, [0], [0]))
    call MPI_Comm_set_name(dup, 'twice', ierr)
    call say('MPI_Comm_set_name comm=dup name=twice')
    call MPI_Comm_free(dup, ierr)
    call say('MPI_Comm_free freecomm=dup')
  end subroutine nonblocking

  subroutine types
    integer :: t, u, n
    integer(MPI_ADDRESS_KIND) :: lb, extent, far(2)
    call MPI_Type_create_subarray(2, [5, 4], [3, 2], [1, 0], MPI_ORDER_FORTRAN, MPI_INTEGER, t, ierr)
    call say('MPI_Type_create_subarray ndims=2 sizes=[5,4] subsizes=[3,2] starts=[1,0] order=MPI_ORDER_FORTRAN '// &
         'type=MPI_INTEGER newtype=new:sub')
    lb = -8
    extent = 96
    call MPI_Type_create_resized(t, lb, extent, u, ierr)
    call say('MPI_Type_create_resized type=sub lb=-8 extent=96 newtype=new:resized')
    call MPI_Type_commit(u, ierr)
    call say('MPI_Type_commit committype=resized')
    call MPI_Sendrecv(out, 2, u, right, 41, in, 12, MPI_INTEGER, left, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call say('MPI_Sendrecv sendcount=2 sendtype=resized dest='//num(right)//' sendtag=41 recvcount=12 '// &
         'recvtype=MPI_INTEGER source='//num(left)//' recvtag=41 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=48')
    call take
    call MPI_Type_free(u, ierr)
    call say('MPI_Type_free freetype=resized')
    call MPI_Type_free(t, ierr)
    call say('MPI_Type_free freetype=sub')
    call MPI_Type_indexed(2, [3, 1], [0, 7], MPI_DOUBLE_PRECISION, t, ierr)
    call say('MPI_Type_indexed count=2 blocklengths=[3,1] displacements=[0,7] type=MPI_DOUBLE_PRECISION '// &
         'newtype=new:indexed')
    call MPI_Type_size(t, n, ierr)
    call say('MPI_Type_size type=indexed size='//num(n))
    sum = sum + n
    far = [24, 0]
    call MPI_Type_create_hindexed(2, [1, 2], far, t, u, ierr)
    call say('MPI_Type_create_hindexed count=2 blocklengths=[1,2] displacements=[24,0] type=indexed newtype=new:hindexed')
    call MPI_Type_free(t, ierr)
    call say('MPI_Type_free freetype=indexed')
    call MPI_Type_free(u, ierr)
    call say('MPI_Type_free freetype=hindexed')
    call MPI_Type_create_f90_real(13, 200, t, ierr)
    call say('MPI_Type_create_f90_real precision=13 range=200 newtype=new:real')
    call MPI_Type_size(t, n, ierr)
    call say('MPI_Type_size type=real size='//num(n))
    sum = sum + n
    call MPI_Type_size(MPI_CHARACTER, n, ierr)
    call say('MPI_Type_size type=MPI_CHARACTER size=1')
    sum = sum + n
    call MPI_Type_size(MPI_2INTEGER, n, ierr)
    call say('MPI_Type_size type=MPI_2INTEGER size='//num(n))
    sum = sum + n
  end subroutine types

  subroutine topology
    integer :: graph, cart, kind, dims(2), coords(2), from, to
    logical :: periods(2)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, [size, 1], [.true., .false.], .false., cart, ierr)
    call say('MPI_Cart_create comm=MPI_COMM_WORLD ndims=2 dims='//trim(list(2, [size, 1]))// &
         ' periods=[true,false] reorder=0 newcomm=new:cart')
    call MPI_Cart_get(cart, 2, dims, periods, coords, ierr)
    call say('MPI_Cart_get comm=cart maxdims=2 dims='//trim(list(2, dims))//' periods=[1,0] coords='//list(2, coords))
    sum = sum + dims(1) + coords(1) + count(periods)
    call MPI_Cart_shift(cart, 1, 1, from, to, ierr)
    call say('MPI_Cart_shift comm=cart direction=1 disp=1 source='//rnk(from)//' dest='//rnk(to))
    call MPI_Topo_test(cart, kind, ierr)
    call say('MPI_Topo_test comm=cart status=MPI_CART')
    if (kind == MPI_CART) sum = sum + 1
    call MPI_Comm_free(cart, ierr)
    call say('MPI_Comm_free freecomm=cart')
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, [left, rank], [7, 8], 2, [right, rank], [7, 8], &
         MPI_INFO_NULL, .false., graph, ierr)
    call say('MPI_Dist_graph_create_adjacent comm=MPI_COMM_WORLD indegree=2 sources='//trim(list(2, [left, rank]))// &
         ' sourceweights=[7,8] outdegree=2 destinations='//trim(list(2, [right, rank]))// &
         ' destweights=[7,8] reorder=0 newcomm=new:graph')
    call MPI_Comm_free(graph, ierr)
    call say('MPI_Comm_free freecomm=graph')
  end subroutine topology

end program f90_mix
