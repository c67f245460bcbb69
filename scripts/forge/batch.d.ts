import { batch } from '../../index';
export = batch;
